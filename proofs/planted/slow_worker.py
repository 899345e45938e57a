# %% planted: one shard that takes ten times as long
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PAUSE = 0.08  # 0.05..0.12
SHARDS = 6  # 5..9


def load(shard):
    if shard == SHARDS - 1:
        time.sleep(PAUSE * 12)  # planted
    time.sleep(PAUSE)
    return shard


with ThreadPoolExecutor(SHARDS) as pool:
    print(list(pool.map(load, range(SHARDS))))

# %% planted: processes, one of them with most of the rows
import multiprocessing

ROWS = 500000  # 400000..700000
WORKERS = 4  # 3..5


def work(part):
    total = 0
    for row in range(ROWS * (12 if part == 1 else 1)):  # planted
        total += row % 7  # planted
    return total


def main():
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        print(pool.map(work, range(WORKERS), chunksize=1))


if __name__ == "__main__":
    main()

# %% planted: threads, one of which computes for long
import threading

SIZE = 60000  # 50000..90000


class Worker(threading.Thread):
    def __init__(self, name, pages):
        super().__init__(name=name)
        self.pages = pages

    def run(self):
        for page in self.pages:
            self.index(page)  # planted

    def index(self, page):
        total = 0
        for letter in range(page):
            total += letter % 26  # planted


workers = [Worker(f"indexer-{n}", [SIZE * (20 if n == 2 else 1)] * 2) for n in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()

# %% planted: asyncio tasks, one service is slow
import asyncio

SLOW = 0.9  # 0.6..1.2


async def call(service, seconds):
    await asyncio.sleep(seconds)  # planted
    return service


async def main():
    services = {"users": 0.03, "orders": 0.04, "stock": SLOW, "prices": 0.05}
    print(await asyncio.gather(*(call(name, seconds) for name, seconds in services.items())))


asyncio.run(main())

# %% planted: a queue of jobs, one of which is huge
import queue
import threading
import time

JOBS = 12  # 8..16
PAUSE = 0.02  # 0.015..0.03


def convert(job):
    time.sleep(PAUSE * (50 if job == JOBS - 1 else 1))  # planted


def worker(jobs):
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            return
        convert(job)  # planted


jobs = queue.Queue()
for number in range(JOBS):
    jobs.put(number)
crew = [threading.Thread(target=worker, args=(jobs,), name=f"worker-{n}") for n in range(4)]
for each in crew:
    each.start()
for each in crew:
    each.join()

# %% healthy: workers with the same share
from concurrent.futures import ThreadPoolExecutor

ROWS = 400000  # 300000..600000


def work(part):
    total = 0
    for row in range(part * ROWS // 4, (part + 1) * ROWS // 4):
        total += row % 7
    return total


def summarize(parts):
    total = 0
    for number in range(3_000_000):
        total += number & 1
    return total + sum(parts)


with ThreadPoolExecutor(2) as pool:
    print(summarize(pool.map(work, range(2))))

# %% healthy: processes with the same share
import multiprocessing

ROWS = 900000  # 700000..1400000


def work(part):
    total = 0
    for row in range(ROWS):
        total += (row + part) % 7
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(work, range(6), chunksize=1)))

# %% healthy: a server thread and its clients
import socketserver
import socket
import threading

CLIENTS = 20  # 15..30


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)


def talk(address):
    with socket.create_connection(address) as link:
        link.sendall(b"hello\n")
        return link.recv(20)


def work():
    total = 0
    for number in range(3_000_000):
        total += number & 7
    return total


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(sum(len(talk(server.server_address)) for _ in range(CLIENTS)), work())
server.shutdown()

# %% healthy: gather of equal tasks, then work
import asyncio

PAUSE = 0.1  # 0.05..0.15


async def call(number):
    await asyncio.sleep(PAUSE)
    return number


def work():
    total = 0
    for number in range(3_500_000):
        total += number & 7
    return total


async def main():
    return sum(await asyncio.gather(*(call(number) for number in range(6))))


print(asyncio.run(main()), work())

# %% planted: a map over files, one of them huge
from concurrent.futures import ThreadPoolExecutor
import time


def read(size):
    time.sleep(size / 1000)  # planted


with ThreadPoolExecutor(4) as pool:
    list(pool.map(read, [40, 50, 1200, 45, 60, 50, 40, 55]))

# %% planted: gather over hosts, one of which is slow
import asyncio


class Host:
    def __init__(self, name, delay):
        self.name, self.delay = name, delay

    async def status(self):
        await asyncio.sleep(self.delay)  # planted
        return self.name


async def check(host):
    return await host.status()  # planted


async def main():
    hosts = [Host(f"h{n}", 0.05 + 0.005 * n) for n in range(7)] + [Host("slow", 1.2)]
    print(len(await asyncio.gather(*(check(host) for host in hosts))))


asyncio.run(main())

# %% planted: worker objects with a method run, one computes for long
import threading


class Worker(threading.Thread):
    def __init__(self, steps):
        super().__init__()
        self.steps, self.result = steps, 0

    def run(self):
        self.result = self.compute()  # planted

    def compute(self):
        total = 0
        for number in range(self.steps):
            total += number % 5  # planted
        return total


workers = [Worker(steps) for steps in (40_000, 50_000, 45_000, 5_000_000)]
for each in workers:
    each.start()
for each in workers:
    each.join()

# %% healthy: threads with jobs of random length
import threading
import time


def job(n):
    time.sleep(0.1 + 0.02 * n)


threads = [threading.Thread(target=job, args=(n,)) for n in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
