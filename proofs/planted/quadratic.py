# %% planted: a list that is copied for each item
ITEMS = 14000  # 12000..20000


def squares():
    result = []
    for number in range(ITEMS):
        result = result + [number * number]  # planted
    return result


print(len(squares()))

# %% planted: insert at the front
ITEMS = 60000  # 50000..90000


class Log:
    def __init__(self):
        self.lines = []

    def add(self, line):
        self.lines.insert(0, line)  # planted

    def fill(self):
        for number in range(ITEMS):
            self.add(f"line {number}")


log = Log()
log.fill()
print(len(log.lines))

# %% planted: a text that grows at the front
LINES = 30000  # 25000..40000


def render(rows):
    page = ""
    for row in rows:
        page = f"<li>{row}</li>\n" + page  # planted
    return page


print(len(render(range(LINES))))

# %% planted: an attribute that grows by each message
MESSAGES = 15000  # 12000..20000


class Buffer:
    def __init__(self):
        self.data = b""
        self.seen = 0

    def feed(self, part):
        self.data = self.data + part  # planted
        self.seen += 1


def receive():
    buffer = Buffer()
    part = bytes(64)
    for _ in range(MESSAGES):
        buffer.feed(part)  # planted
    return len(buffer.data)


print(receive())

# %% planted: the whole state as JSON for each change
import json

CHANGES = 1200  # 1000..1700


def save_all(changes):
    state = {}
    for number in range(changes):
        state[f"key{number}"] = number * 1.5
        text = json.dumps(state)  # planted
    return text


print(len(save_all(CHANGES)))

# %% planted: membership in a list of what was seen
WORDS = 7000  # 6000..9000


def unique(words):
    seen = []
    for word in words:
        if word not in seen:  # planted
            seen.append(word)  # planted
    return seen


print(len(unique([f"word{number}" for number in range(WORDS)])))

# %% planted: taking from the front of a list
TASKS = 130000  # 110000..180000


def drain(tasks):
    done = 0
    while tasks:
        task = tasks.pop(0)  # planted
        done += task & 1
    return done


print(drain(list(range(TASKS))))

# %% planted: reduce with concatenation
import functools

PARTS = 3500  # 3000..5000


def flatten(parts):
    return functools.reduce(lambda left, right: left + right, parts, [])  # planted


print(len(flatten([[number] * 5 for number in range(PARTS)])))

# %% healthy: append, then join
LINES = 500000  # 300000..900000


def render(rows):
    parts = []
    for row in rows:
        parts.append(row * 2)
    return parts


def page(rows):
    return "\n".join([f"<li>{row}</li>" for row in rows])


print(len(page(range(LINES))))

# %% healthy: a deque
from collections import deque

TASKS = 60000  # 40000..90000


def drain():
    tasks = deque(range(TASKS))
    done = 0
    while tasks:
        done += tasks.popleft() & 1
    for number in range(2_000_000):
        done += number & 1
    return done


print(drain())

# %% healthy: a set of what was seen
WORDS = 60000  # 40000..90000


def unique(words):
    seen = set()
    kept = []
    for word in words:
        if word not in seen:
            seen.add(word)
            kept.append(word)
    return kept


def checksum(words):
    total = 0
    for _ in range(30):
        for word in words:
            total += word > "word3"
    return total


print(checksum(unique([f"word{number}" for number in range(WORDS)])))

# %% healthy: sums that grow, of numbers
STEPS = 3000000  # 2000000..5000000


def accumulate():
    total, text = 0, ""
    for number in range(STEPS):
        total = total + number
        if number % 100_000 == 0:
            text = text + "."
    return total, text


print(accumulate())

# %% healthy: jobs of growing size
JOBS = 40  # 30..60


def job(size):
    total = 0
    for number in range(size * 2500):
        total += number % 3
    return total


print(sum(job(size) for size in range(JOBS)))

# %% planted: dict merged for each item
ITEMS = 12000  # 10000..14000


def collect(items):
    merged = {}
    for key in items:
        merged = {**merged, key: len(merged)}  # planted
    return merged


print(len(collect(range(ITEMS))))

# %% planted: duplicates by list.index
ITEMS = 9000  # 8000..11000


class Index:
    def __init__(self):
        self.names = []

    def add(self, name):
        if name not in self.names:  # planted
            self.names.append(name)

    def fill(self):
        for number in range(ITEMS):
            self.add(f"name {number}")  # planted


index = Index()
index.fill()
print(len(index.names))

# %% planted: bytes that grow
CHUNKS = 20000  # 16000..24000


def receive(chunks):
    data = b""
    for chunk in chunks:
        data += chunk  # planted
    return data


print(len(receive(bytes([n % 251]) * 40 for n in range(CHUNKS))))

# %% planted: sorted after each insert
ITEMS = 3500  # 3000..4500


def insert(rows, value):
    rows.append(value)
    return sorted(rows)  # planted


def build():
    rows = []
    for number in range(ITEMS):
        rows = insert(rows, (number * 7919) % 10007)  # planted
    return rows


print(len(build()))

# %% planted: sum of lists
LISTS = 6000  # 5000..7000


def flatten(lists):
    return sum(lists, [])  # planted


print(len(flatten([[n, n] for n in range(LISTS)])))

# %% planted: min and remove, again and again
ITEMS = 5000  # 4000..6000


def schedule(jobs):
    order = []
    while jobs:
        first = min(jobs)  # planted
        jobs.remove(first)  # planted
        order.append(first)
    return order


print(len(schedule([(n * 7919) % 100003 for n in range(ITEMS)])))

# %% healthy: extend, and one sort
ITEMS = 200000  # 150000..250000


def build():
    rows = []
    for number in range(ITEMS):
        rows.append((number * 7919) % 1000003)
    rows.sort()
    return rows


print(len(build()))

# %% healthy: a dictionary that grows
ITEMS = 400000  # 300000..500000


def count():
    seen = {}
    for number in range(ITEMS):
        key = number * 31 % 50021
        seen[key] = seen.get(key, 0) + 1
    return seen


print(len(count()))
