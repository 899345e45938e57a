def collect(n):
    text = 400 * " "
    for _ in range(n):
        text.split()


collect(300_000)
