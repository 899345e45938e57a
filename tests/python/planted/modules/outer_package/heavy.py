total = 0
for i in range(4_000_000):
    total += i * i
