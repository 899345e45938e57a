import threading

done = threading.Event()


def idle():
    done.wait()


def compute():
    total = 0
    for i in range(4_000_000):
        total += i * i
    return total


threads = [threading.Thread(target=idle) for _ in range(3)]
for thread in threads:
    thread.start()
compute()
done.set()
for thread in threads:
    thread.join()
