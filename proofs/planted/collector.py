# %% planted: gc.collect() after each item
import gc

ITEMS = 60  # 40..100
KEPT = 60000  # 40000..100000

kept = [{"n": number} for number in range(KEPT)]


def handle(number):
    record = {"number": number, "squares": [value * value for value in range(200)]}
    gc.collect()  # planted
    return len(record["squares"])


print(sum(handle(number) for number in range(ITEMS)))

# %% planted: objects that refer to each other, by the thousand
KEPT = 150000  # 100000..250000
NODES = 300000  # 200000..400000


class Node:
    def __init__(self, parent):
        self.parent = parent  # planted
        self.children = []  # planted
        self.me = self  # planted


def build(kept):
    last = None
    for number in range(NODES):
        last = Node(last if number % 10 else None)  # planted
    return last


kept = [[number] for number in range(KEPT)]  # planted
print(build(kept) is not None)

# %% planted: a low threshold, and many objects that stay
import gc

ROWS = 200000  # 150000..300000
gc.set_threshold(60, 5, 5)


def load():
    rows = []
    for number in range(ROWS):
        rows.append({"id": number, "tags": [number]})  # planted
    return rows


print(len(load()))

# %% planted: a worker that collects by itself
import gc
from dataclasses import dataclass, field

JOBS = 40  # 30..60
SIZE = 90000  # 60000..120000


@dataclass
class Job:
    number: int
    parts: list = field(default_factory=list)


class Worker:
    def __init__(self):
        self.history = [Job(number, [number]) for number in range(SIZE)]

    def run(self, job):
        job.parts.extend(range(50))
        self.clean()  # planted
        return sum(job.parts)

    def clean(self):
        gc.collect()  # planted


worker = Worker()
print(sum(worker.run(Job(number)) for number in range(JOBS)))

# %% healthy: many objects without cycles
ROWS = 120000  # 80000..200000
STEPS = 1500000  # 1000000..2500000


def load():
    return [(number, str(number)) for number in range(ROWS)]


def work(rows):
    total = 0
    for number in range(STEPS):
        total += rows[number % ROWS][0]
    return total


print(work(load()))

# %% healthy: one collection at the end
import gc

STEPS = 2000000  # 1500000..3000000


def work():
    total = 0
    for number in range(STEPS):
        total += number % 9
    return total


print(work())
gc.collect()

# %% healthy: the collector is switched off while data is loaded
import gc

ROWS = 200000  # 150000..300000


def load():
    gc.disable()
    try:
        return [{"id": number} for number in range(ROWS)]
    finally:
        gc.enable()


def total(rows):
    result = 0
    for _ in range(8):
        for row in rows:
            result += row["id"]
    return result


gc.freeze()
print(total(load()))

# %% healthy: a few small cycles
STEPS = 1500000  # 1000000..2500000


class Pair:
    def __init__(self):
        self.me = self


def work():
    total = 0
    for number in range(STEPS):
        if number % 5000 == 0:
            Pair()
        total += number & 3
    return total


print(work())

# %% planted: a large cache of objects, and many new containers
CACHE = 250000  # 200000..400000
ROUNDS = 400000  # 300000..500000


class Item:
    def __init__(self, n):
        self.n, self.next = n, None


def fill():
    return [Item(n) for n in range(CACHE)]  # planted


def churn(cache):
    kept = []
    for number in range(ROUNDS):
        kept.append([number])  # planted
    return len(kept)


import gc

gc.set_threshold(500, 5, 2)
cache = fill()
print(churn(cache))

# %% planted: a handler that collects after each request
import gc


class Application:
    def __init__(self):
        self.sessions = [{"id": n, "data": [n] * 3} for n in range(60000)]

    def handle(self, n):
        result = sum(range(n % 300))
        self.cleanup()
        return result

    def cleanup(self):
        gc.collect()  # planted


application = Application()
print(sum(application.handle(n) for n in range(60)))

# %% healthy: a freeze after start-up
import gc

rows = [[n] for n in range(100_000)]
gc.collect()
gc.freeze()


def work():
    total = 0
    for number in range(2_000_000):
        total += number & 3
    return total


print(work(), len(rows))
