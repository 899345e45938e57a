# %% planted: threads that encode JSON
import json
import threading

TIMES = 2500  # 2000..4000
WORKERS = 4  # 3..5


def crunch(times):
    for _ in range(times):
        json.dumps(list(range(300)))  # planted


threads = [threading.Thread(target=crunch, args=(TIMES,), name=f"w{n}") for n in range(WORKERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# %% planted: a pool of threads for arithmetic
from concurrent.futures import ThreadPoolExecutor

LIMIT = 9000  # 7000..14000
CHUNKS = 8  # 6..10


def primes_below(limit, first):
    found = []
    for number in range(first, first + limit):
        divisor = 2
        while divisor * divisor <= number and number % divisor:  # planted
            divisor += 1  # planted
        if divisor * divisor > number:
            found.append(number)  # planted
    return len(found)


def main():
    with ThreadPoolExecutor(max_workers=4) as pool:
        parts = pool.map(lambda part: primes_below(LIMIT, 2 + part * LIMIT), range(CHUNKS))  # planted
        print(sum(parts))


main()

# %% planted: subclasses of Thread that count words
import re
import threading

LINES = 9000  # 7000..12000


class Counter(threading.Thread):
    pattern = re.compile(r"\w+")

    def __init__(self, lines):
        super().__init__()
        self.lines = lines
        self.counts = {}

    def run(self):
        for line in self.lines:
            self.count(line)  # planted

    def count(self, line):
        for word in self.pattern.findall(line):  # planted
            self.counts[word] = self.counts.get(word, 0) + 1  # planted


text = [f"the quick brown fox {n} jumps over the lazy dog {n % 13} again and again" for n in range(LINES)]
counters = [Counter(text[part::3]) for part in range(3)] * 1
counters += [Counter(text) for _ in range(2)]
for counter in counters:
    counter.start()
for counter in counters:
    counter.join()
print(sum(len(counter.counts) for counter in counters))

# %% planted: asyncio.to_thread for work that is all Python
import asyncio

STEPS = 900000  # 700000..1500000
JOBS = 4  # 4..6


def simulate(seed):
    state = seed
    for _ in range(STEPS):
        state = (state * 1103515245 + 12345) % 2147483648  # planted
    return state


async def main():
    print(await asyncio.gather(*(asyncio.to_thread(simulate, seed) for seed in range(JOBS))))


asyncio.run(main())

# %% healthy: threads that mostly wait for the network
import socket
import threading
import time

ROUNDS = 12  # 8..16


def serve(listener):
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def answer(peer):
    with peer:
        while peer.recv(10):
            peer.sendall(b"k")


def ask(port, total):
    with socket.create_connection(("127.0.0.1", port)) as link:
        for number in range(ROUNDS):
            link.sendall(b"q")
            link.recv(10)
            for step in range(5000):
                total += step ^ number
    return total


def work():
    total = 0
    for number in range(2_500_000):
        total += number & 5
    return total


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
crowd = [threading.Thread(target=ask, args=(listener.getsockname()[1], 0)) for _ in range(3)]
for each in crowd:
    each.start()
for each in crowd:
    each.join()
print(work())
listener.close()

# %% healthy: threads that hash outside of the GIL
import hashlib
import threading

SIZE = 60000000  # 40000000..90000000
data = bytes(SIZE)


def digest():
    return hashlib.sha256(data).hexdigest()


threads = [threading.Thread(target=digest) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# %% healthy: one thread after the other
import threading

STEPS = 700000  # 500000..1200000


def crunch(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003
    return total


for seed in range(3):
    thread = threading.Thread(target=crunch, args=(seed,))
    thread.start()
    thread.join()

# %% healthy: processes instead of threads
import multiprocessing

STEPS = 1200000  # 900000..2000000


def crunch(seed):
    total = seed
    for number in range(STEPS):
        total = (total * 31 + number) % 1_000_003
    return total


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(crunch, [1, 2]))

# %% planted: a pool that parses and one main thread that works, too
import json
from concurrent.futures import ThreadPoolExecutor

DOCUMENTS = 160  # 120..200
document = json.dumps([{"id": n, "name": f"n{n}", "tags": ["a", "b"]} for n in range(60)])


def score(rows):
    total = 0
    for row in rows:
        for key, value in row.items():
            total += len(key) + len(str(value))  # planted
    return total


def handle(text):
    return sum(score(json.loads(text)) for _ in range(8))  # planted


def main():
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(handle, document) for _ in range(DOCUMENTS)]  # planted
        print(sum(each.result() for each in futures))


main()

# %% planted: threads of pure loops, started by a helper
import threading

STEPS = 1500000  # 1000000..2000000


def spin(steps, out):
    total = 0
    for number in range(steps):
        total += number * number  # planted
    out.append(total)


def parallel(function, count):
    out = []
    threads = [threading.Thread(target=function, args=(STEPS, out)) for _ in range(count)]  # planted
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return out


print(len(parallel(spin, 4)))

# %% planted: run_in_executor for templates
import asyncio
import string
from functools import partial

PAGES = 24  # 20..30
template = string.Template("$a and $b of $c, " * 40)


def render(template, number):
    text = ""
    for row in range(150):
        text = template.substitute(a=row, b=number, c=len(text))  # planted
    return len(text)


async def main():
    loop = asyncio.get_running_loop()
    jobs = [loop.run_in_executor(None, partial(render, template, n)) for n in range(PAGES)]  # planted
    print(sum(await asyncio.gather(*jobs)))


asyncio.run(main())

# %% healthy: a thread that computes while the main thread waits
import threading

STEPS = 2500000  # 2000000..4000000


def work():
    total = 0
    for number in range(STEPS):
        total += number & 7
    print(total)


thread = threading.Thread(target=work)
thread.start()
thread.join()

# %% healthy: compression in threads
import threading
import zlib

data = bytes(range(256)) * 40000


def pack():
    for _ in range(3):
        zlib.compress(data, 6)


threads = [threading.Thread(target=pack) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
