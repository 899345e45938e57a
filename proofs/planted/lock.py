# %% planted: a log that sleeps under its lock
import threading
import time

WORKERS = 6  # 4..9
LINES = 25  # 15..40
PAUSE = 0.004  # 0.003..0.008
lock = threading.Lock()


def write_log(message):
    with lock:  # planted
        time.sleep(PAUSE)  # planted
    return len(message)


def worker():
    for number in range(LINES):
        write_log(str(number))


threads = [threading.Thread(target=worker, name=f"w{n}") for n in range(WORKERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# %% planted: a shared cache, held while an answer is fetched
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

JOBS = 120  # 80..200
DELAY = 0.006  # 0.004..0.01


def serve(listener):
    peer, _ = listener.accept()
    with peer:
        while peer.recv(64):
            time.sleep(DELAY)
            peer.sendall(b"ok")


class Cache:
    def __init__(self, link):
        self.lock = threading.RLock()
        self.link = link
        self.known = {}

    def get(self, key):
        self.lock.acquire()  # planted
        try:
            if key not in self.known:
                self.known[key] = self.load(key)  # planted
            return self.known[key]
        finally:
            self.lock.release()

    def load(self, key):
        self.link.sendall(str(key).encode())
        return self.link.recv(64)  # planted


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
cache = Cache(socket.create_connection(listener.getsockname()))
with ThreadPoolExecutor(5) as pool:
    print(len(list(pool.map(cache.get, range(JOBS)))))

# %% planted: computing under a lock that all threads want
import threading

STEPS = 60000  # 50000..90000
TIMES = 25  # 20..40


class Ledger:
    def __init__(self):
        self._mutex = threading.Lock()
        self.balance = 0

    def post(self, amount):
        with self._mutex:  # planted
            self.balance += self.interest(amount)  # planted

    def interest(self, amount):
        total = 0
        for day in range(STEPS):
            total += (amount * day) % 7
        return total


def teller(ledger, first):
    for amount in range(first, first + TIMES):
        ledger.post(amount)


ledger = Ledger()
tellers = [threading.Thread(target=teller, args=(ledger, n)) for n in range(4)]
[each.start() for each in tellers]
[each.join() for each in tellers]
print(ledger.balance)

# %% planted: a decorator that lets one thread in at a time
import functools
import threading
import time

PAUSE = 0.01  # 0.006..0.015
CALLS = 20  # 15..30


def synchronized(function):
    guard = threading.Lock()

    @functools.wraps(function)
    def inner(*args, **kwargs):
        with guard:  # planted
            return function(*args, **kwargs)  # planted

    return inner


@synchronized
def save(record):
    time.sleep(PAUSE)  # planted
    return record


class Importer(threading.Thread):
    def run(self):
        for number in range(CALLS):
            save({"n": number})


importers = [Importer() for _ in range(5)]
for importer in importers:
    importer.start()
for importer in importers:
    importer.join()

# %% planted: one writer holds the lock while it writes to disk
import os
import tempfile
import threading

ROUNDS = 40  # 30..60
BLOCK = 2000000  # 1000000..3000000

gate = threading.Lock()


def append(file, block):
    with gate:  # planted
        file.write(block)  # planted
        file.flush()
        os.fsync(file.fileno())  # planted


def producer(file, block):
    for _ in range(ROUNDS):
        append(file, block)


with tempfile.TemporaryFile() as shared:
    crowd = [threading.Thread(target=producer, args=(shared, b"z" * BLOCK)) for _ in range(4)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()

# %% healthy: short critical sections
import threading

STEPS = 250000  # 150000..400000

lock = threading.Lock()
totals = {}


def count(name):
    found = 0
    for number in range(STEPS):
        found += number % 3
    with lock:
        totals[name] = found


threads = [threading.Thread(target=count, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
    thread.join()
print(sum(totals.values()))

# %% healthy: idle workers at a queue
import queue
import threading

STEPS = 1200000  # 800000..2000000
WORKERS = 4  # 2..6

jobs = queue.Queue()


def worker():
    while (job := jobs.get()) is not None:
        job()
        jobs.task_done()


def compute():
    total = 0
    for number in range(STEPS):
        total += number * number
    return total


crew = [threading.Thread(target=worker, daemon=True) for _ in range(WORKERS)]
for each in crew:
    each.start()
jobs.put(compute)
jobs.join()
for _ in crew:
    jobs.put(None)

# %% healthy: a condition that readers wait for
import threading
import time

ROUNDS = 8  # 6..12
STEPS = 150000  # 100000..250000

ready = threading.Condition()
items = []


def consume():
    taken = 0
    while taken < ROUNDS:
        with ready:
            while not items:
                ready.wait()
            items.pop()
        taken += 1


def produce():
    for number in range(ROUNDS):
        total = 0
        for step in range(STEPS):
            total += step ^ number
        with ready:
            items.append(total)
            ready.notify()


reader = threading.Thread(target=consume)
reader.start()
produce()
reader.join()

# %% healthy: a pipeline with back-pressure
import queue
import threading

ITEMS = 30  # 20..50
STEPS = 40000  # 30000..60000

first, second = queue.Queue(maxsize=2), queue.Queue(maxsize=2)


def read():
    for number in range(ITEMS):
        first.put(number)
    first.put(None)


def parse():
    while (number := first.get()) is not None:
        total = 0
        for step in range(STEPS):
            total += step * number % 7
        second.put(total)
    second.put(None)


def write():
    total = 0
    while (value := second.get()) is not None:
        total += value
    print(total)


stages = [threading.Thread(target=stage, name=stage.__name__) for stage in (read, parse, write)]
for stage in stages:
    stage.start()
for stage in stages:
    stage.join()

# %% planted: two locks, one of which is held for long
import threading
import time

WORKERS = 5  # 4..8
ROUNDS = 30  # 20..40


class Account:
    def __init__(self):
        self.lock = threading.Lock()
        self.stats_lock = threading.Lock()
        self.total = 0

    def audit(self):
        with self.lock:  # planted
            self._slow()  # planted

    def _slow(self):
        time.sleep(0.005)  # planted

    def count(self):
        with self.stats_lock:
            self.total += 1


def run(account):
    for _ in range(ROUNDS):
        account.count()
        account.audit()


account = Account()
threads = [threading.Thread(target=run, args=(account,)) for _ in range(WORKERS)]
for each in threads:
    each.start()
for each in threads:
    each.join()

# %% planted: a context manager that takes the lock
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

JOBS = 100  # 70..150
lock = threading.RLock()


@contextlib.contextmanager
def exclusive():
    lock.acquire()  # planted
    try:
        yield
    finally:
        lock.release()


def job(number):
    with exclusive():  # planted
        time.sleep(0.006)  # planted
    return number


with ThreadPoolExecutor(6) as pool:
    print(sum(pool.map(job, range(JOBS))))

# %% planted: one thread holds the lock, many readers wait
import threading
import time

READERS = 6  # 4..8
guard = threading.Lock()
state = {"version": 0}
done = threading.Event()


def refresh():
    for _ in range(8):
        with guard:
            time.sleep(0.12)  # planted
            state["version"] += 1
        time.sleep(0.002)
    done.set()


def read():
    while not done.is_set():
        with guard:  # planted
            state["version"] + 1
        time.sleep(0.001)


threads = [threading.Thread(target=refresh)] + [threading.Thread(target=read) for _ in range(READERS)]
for each in threads:
    each.start()
for each in threads:
    each.join()

# %% planted: a multiprocessing lock in threads around a file
import multiprocessing
import os
import threading

WRITES = 60  # 40..90
lock = multiprocessing.Lock()


def store(name, text):
    with lock:  # planted
        with open(name, "a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # planted


def work(number):
    for each in range(WRITES):
        store("shared.log", f"{number} {each}\n" * 50)


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()

# %% healthy: a lock that one thread alone uses
import threading

STEPS = 300000  # 200000..400000
lock = threading.Lock()


def work():
    total = 0
    for number in range(STEPS):
        with lock:
            total += number
    return total


print(work())

# %% healthy: barriers between phases of equal threads
import threading
import time

barrier = threading.Barrier(3)


def phase(number):
    for _ in range(10):
        time.sleep(0.05)
        barrier.wait()


threads = [threading.Thread(target=phase, args=(n,)) for n in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
