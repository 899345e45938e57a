def tiny(x):
    return (x * x + x) % 7


def loop(n):
    for i in range(n):
        tiny(i)


loop(300_000)
