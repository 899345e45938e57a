# %% planted: many more processes than processors
import multiprocessing
import os

STEPS = 600000  # 500000..900000
WORKERS = 12  # 10..16


def crunch(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003
    return total


def main():
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        print(sum(pool.map(crunch, range(WORKERS * 2), chunksize=1)))  # planted


if __name__ == "__main__":
    main()

# %% planted: a process pool of concurrent.futures
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

SIZE = 500000  # 400000..700000
WORKERS = 10  # 8..14


def simulate(seed):
    state = seed
    for _ in range(SIZE):
        state = (state * 1103515245 + 12345) % 2147483648
    return state


class Experiment:
    def __init__(self, runs):
        self.runs = runs

    def run(self):
        with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork")) as pool:
            return [future.result() for future in [pool.submit(simulate, seed) for seed in range(self.runs)]]  # planted


if __name__ == "__main__":
    print(len(Experiment(WORKERS * 2).run()))

# %% planted: a pool of forty threads for arithmetic
from concurrent.futures import ThreadPoolExecutor

STEPS = 60000  # 40000..80000
WORKERS = 40  # 30..60


def crunch(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003  # planted
    return total


def main():
    with ThreadPoolExecutor(WORKERS) as pool:
        print(sum(pool.map(crunch, range(WORKERS * 2))))  # planted


main()

# %% planted: two connections for sixteen workers
import queue
import threading
import time

WORKERS = 12  # 8..16
QUERIES = 8  # 6..12
LATENCY = 0.01  # 0.008..0.015


class Pool:
    def __init__(self, size):
        self.free = queue.Queue()
        for number in range(size):
            self.free.put(f"connection {number}")

    def query(self, text):
        connection = self.free.get()  # planted
        try:
            time.sleep(LATENCY)  # planted
            return connection + text
        finally:
            self.free.put(connection)


def worker(pool):
    for number in range(QUERIES):
        pool.query(str(number))


pool = Pool(2)
workers = [threading.Thread(target=worker, args=(pool,)) for _ in range(WORKERS)]
for each in workers:
    each.start()
for each in workers:
    each.join()

# %% planted: a semaphore that lets two of many in
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CALLS = 80  # 60..120
LATENCY = 0.015  # 0.01..0.02
limit = threading.BoundedSemaphore(2)


def request(number):
    with limit:  # planted
        time.sleep(LATENCY)  # planted
    return number


with ThreadPoolExecutor(16) as pool:
    print(sum(pool.map(request, range(CALLS))))

# %% healthy: as many processes as processors
import multiprocessing
import os

STEPS = 900000  # 700000..1500000


def crunch(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(min(os.cpu_count() or 1, 2)) as pool:
        print(sum(pool.map(crunch, range(4))))

# %% healthy: many threads that wait for different things
import threading
import time

THREADS = 20  # 15..30
PAUSE = 0.25  # 0.2..0.4


def download(number):
    time.sleep(PAUSE)
    return number


def work():
    total = 0
    for number in range(2_500_000):
        total += number & 3
    return total


threads = [threading.Thread(target=download, args=(n,)) for n in range(THREADS)]
for thread in threads:
    thread.start()
print(work())
for thread in threads:
    thread.join()

# %% healthy: an idle pool of processes
import multiprocessing

STEPS = 2500000  # 2000000..4000000


def tag(number):
    return number * 2


def work():
    total = 0
    for number in range(STEPS):
        total += number & 3
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        first = pool.map(tag, range(8))
        print(sum(first), work())

# %% healthy: a pool with enough connections
import queue
import threading
import time

QUERIES = 25  # 20..40
LATENCY = 0.008  # 0.006..0.012


def worker(free, total=0):
    for number in range(QUERIES):
        connection = free.get()
        try:
            time.sleep(LATENCY)
            for step in range(30_000):
                total += step % 3
        finally:
            free.put(connection)


free = queue.Queue()
for number in range(4):
    free.put(number)
workers = [threading.Thread(target=worker, args=(free,)) for _ in range(3)]
for each in workers:
    each.start()
for each in workers:
    each.join()

# %% planted: a semaphore as a context manager for many threads
import threading
import time

gate = threading.BoundedSemaphore(2)


def fetch(number):
    with gate:  # planted
        time.sleep(0.02)  # planted


threads = [threading.Thread(target=fetch, args=(n,)) for n in range(60)]
for each in threads:
    each.start()
for each in threads:
    each.join()

# %% planted: a connection pool by a queue with a context manager
import contextlib
import queue
import time
from concurrent.futures import ThreadPoolExecutor


class Pool:
    def __init__(self, size):
        self.free = queue.Queue()
        for number in range(size):
            self.free.put(number)

    @contextlib.contextmanager
    def connection(self):
        link = self.free.get()  # planted
        try:
            yield link
        finally:
            self.free.put(link)


def query(pool):
    with pool.connection() as link:  # planted
        time.sleep(0.01)
        return link


pool = Pool(2)
with ThreadPoolExecutor(12) as executor:
    print(len(list(executor.map(lambda _: query(pool), range(120)))))

# %% planted: a pool of 24 processes
import multiprocessing

STEPS = 1200000  # 1000000..1500000


def burn(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003  # planted
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(12) as pool:
        print(len(pool.map(burn, range(12), chunksize=1)))  # planted

# %% healthy: twenty threads that sleep
import threading
import time

threads = [threading.Thread(target=time.sleep, args=(0.6,)) for _ in range(20)]
for each in threads:
    each.start()
for each in threads:
    each.join()
