# %% planted: lru_cache that is too small for its keys
import functools

KEYS = 200  # 150..300
ROUNDS = 12  # 10..16


@functools.lru_cache(maxsize=128)  # planted
def price(key):
    total = 0
    for step in range(4000):
        total += step % (key + 1)
    return total


def main():
    total = 0
    for _ in range(ROUNDS):
        for key in range(KEYS):
            total += price(key)  # planted
    return total


print(main())

# %% planted: an OrderedDict that evicts what is needed next
from collections import OrderedDict

CAPACITY = 64  # 40..90
PAGES = 120  # 110..180
ROUNDS = 14  # 12..20


class Cache:
    def __init__(self, capacity):
        self.capacity = capacity
        self.entries = OrderedDict()

    def get(self, key):
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        value = self.load(key)  # planted
        self.entries[key] = value
        if len(self.entries) > self.capacity:
            self.entries.popitem(last=False)  # planted
        return value

    def load(self, key):
        total = 0
        for step in range(5000):
            total += step ^ key
        return total


cache = Cache(CAPACITY)
print(sum(cache.get(page) for _ in range(ROUNDS) for page in range(PAGES)))  # planted

# %% planted: patterns by the hundred, more than re remembers
import re

FIELDS = 700  # 600..900
LINES = 3  # 2..4


def matches(field, line):
    return re.match(rf"^{field}=(\w+)[;,]?$", line) is not None  # planted


def scan():
    found = 0
    for line in range(LINES):
        for number in range(FIELDS):
            found += matches(f"field{number}", f"field{line}=x")  # planted
    return found


print(scan())

# %% planted: a dictionary that is cleared when it is full
CAPACITY = 50  # 30..80
KEYS = 200  # 150..300
ROUNDS = 12  # 10..16
known = {}


def normalise(text):
    total, size = 0, len(text)
    for step in range(4000):
        total += step % size
    return total


def cached(text):
    if text not in known:
        if len(known) >= CAPACITY:
            known.clear()  # planted
        known[text] = normalise(text)  # planted
    return known[text]


def main():
    return sum(cached(f"key {key}") for _ in range(ROUNDS) for key in range(KEYS))  # planted


print(main())

# %% planted: a method with a cache of its own size
import functools


KEYS = 60  # 40..90
ROUNDS = 40  # 30..50


class Geo:
    @functools.lru_cache(16)  # planted
    def distance(self, place):
        total = 0.0
        for step in range(4000):
            total += (step - place) ** 2
        return total

    def route(self):
        return sum(self.distance(place) for _ in range(ROUNDS) for place in range(KEYS))  # planted


print(Geo().route())

# %% healthy: lru_cache that is large enough
import functools

KEYS = 100  # 60..120
ROUNDS = 15  # 10..20


@functools.lru_cache(maxsize=128)
def price(key):
    total = 0
    for step in range(15000):
        total += step % (key + 1)
    return total


def main():
    total = 0
    for _ in range(ROUNDS):
        for key in range(KEYS):
            total += price(key)
    for number in range(1_500_000):
        total ^= number
    return total


print(main())

# %% healthy: a cache that has most of what is asked
import functools
import random

CALLS = 4000  # 3000..6000


@functools.lru_cache(maxsize=128)
def price(key):
    total = 0
    for step in range(5000):
        total += step % (key + 1)
    return total


def main():
    keys = random.Random(CALLS)
    return sum(price(int(keys.gauss(0, 60)) % 1000) for _ in range(CALLS))


print(main())

# %% healthy: an OrderedDict as a cache that hits
from collections import OrderedDict


class Cache:
    def __init__(self, capacity):
        self.capacity = capacity
        self.entries = OrderedDict()

    def get(self, key):
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        value = self.entries[key] = self.load(key)
        if len(self.entries) > self.capacity:
            self.entries.popitem(last=False)
        return value

    def load(self, key):
        total = 0
        for step in range(40000):
            total += step ^ key
        return total


PAGES = 50  # 30..60
cache = Cache(64)
print(sum(cache.get(page) for _ in range(20) for page in range(PAGES)))

# %% healthy: twenty patterns
import re

LINES = 4000  # 3000..6000
PATTERNS = [re.compile(rf"field{number}=(\d+)") for number in range(20)]


def scan():
    found = 0
    for line in range(LINES):
        text = f"field{line % 30}={line}"
        found += any(pattern.match(text) for pattern in PATTERNS[:3])
    for number in range(2_500_000):
        found += number & 1
    return found


print(scan())

# %% healthy: work that is taken from a dictionary
from collections import OrderedDict

JOBS = 300  # 200..500


def run(job):
    total = 0
    for step in range(8000):
        total += step ^ job
    return total


def drain(jobs):
    total = 0
    while jobs:
        name, job = jobs.popitem(last=False)
        total += run(job)
    return total


print(drain(OrderedDict((f"job{number}", number) for number in range(JOBS))))

# %% planted: a method cache by lru_cache on a cycle of keys
import functools

KEYS = 200  # 150..260
ROUNDS = 12  # 8..15


@functools.lru_cache(maxsize=128)
def price(key):
    return sum((key * n) % 97 for n in range(600))


def invoice():
    return sum(price(key) for _ in range(ROUNDS) for key in range(KEYS))  # planted


print(invoice())

# %% planted: a bounded dict that pops the oldest
ROOM = 64  # 50..90
KEYS = 150  # 120..180


class Cache:
    def __init__(self):
        self.data = {}

    def get(self, key):
        if key not in self.data:
            if len(self.data) >= ROOM:
                self.data.pop(next(iter(self.data)))  # planted
            self.data[key] = self.make(key)  # planted
        return self.data[key]

    def make(self, key):
        return sum((key * n) % 89 for n in range(800))


def run(cache):
    total = 0
    for _ in range(15):
        for key in range(KEYS):
            total += cache.get(key)  # planted
    return total


print(run(Cache()))

# %% healthy: a cache with room
import functools


@functools.lru_cache(maxsize=1024)
def price(key):
    return sum((key * n) % 97 for n in range(3000))


print(sum(price(key) for _ in range(3000) for key in range(200)))
