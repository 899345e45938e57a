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
