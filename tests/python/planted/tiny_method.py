def collect(n):
    text = "one two three four five six"
    for _ in range(n):
        text.split()


collect(300_000)
