def collect(n):
    text = "one"
    for _ in range(n):
        text.split()


collect(300_000)
