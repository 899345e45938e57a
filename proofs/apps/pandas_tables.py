"""Tables of pandas: made, grouped, joined, written and read as Parquet and CSV."""

import io

import numpy as np
import pandas as pd

random = np.random.default_rng(0)
table = pd.DataFrame({"key": random.integers(0, 50, 20_000), "value": random.normal(size=20_000)})
table["word"] = table.key.map(lambda key: f"word{key % 7}")
print(table.groupby("word").value.agg(["mean", "std", "count"]).round(6))
table.to_parquet("t.parquet")
again = pd.read_parquet("t.parquet")
print(again.equals(table), again.merge(table.head(50), on="key").shape)
text = io.StringIO()
table.head(500).to_csv(text)
print(len(text.getvalue()), pd.read_csv(io.StringIO(text.getvalue())).shape)
