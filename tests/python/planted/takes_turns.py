import threading


def compute():
    total = 0
    for i in range(1_000_000):
        total += i * i
    return total


threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
