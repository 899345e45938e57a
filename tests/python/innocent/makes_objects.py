def make(n):
    kept = []
    for i in range(n):
        kept.append((i, str(i)))
    total = 0
    for i in range(3_000_000):
        total += i
    return kept


make(20_000)
