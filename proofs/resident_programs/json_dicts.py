import json

rows = [{"id": i, "name": f"name {i}", "tags": [f"t{j}" for j in range(i % 7)]} for i in range(80_000)]
text = json.dumps(rows)
again = json.loads(text)
print(len(text), len(again))
