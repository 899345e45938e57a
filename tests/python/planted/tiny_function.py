def tiny(x):
    return (x * x + x) % 7 + x * 3 - x // 2 + (x + 1) * (x - 1) % 11


def loop(n):
    for i in range(n):
        tiny(i)


loop(300_000)
