import time


def fetch():
    time.sleep(0.001)


def work():
    total = 0
    for _ in range(5):
        fetch()
        for j in range(1_000_000):
            total += j
    return total


work()
