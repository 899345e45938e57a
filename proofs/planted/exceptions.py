# %% planted: a lookup that raises for most keys
KEYS = 300000  # 200000..500000


def find(table, key):
    if key not in table:
        raise KeyError(key)  # planted
    return table[key]


def count(table):
    missing = 0
    for key in range(KEYS):
        try:
            find(table, key)  # planted
        except KeyError:
            missing += 1
    return missing


print(count({number: 1 for number in range(0, KEYS, 50)}))

# %% planted: conversions that fail --exceptions
VALUES = 250000  # 200000..400000


class Parser:
    def number(self, text):
        try:
            return int(text)  # planted
        except ValueError:
            return None

    def parse(self, texts):
        return [self.number(text) for text in texts]  # planted


texts = ["n/a" if number % 10 else str(number) for number in range(VALUES)]
print(sum(value is None for value in Parser().parse(texts)))

# %% planted: numbers or not, in one loop
TEXTS = 250000  # 200000..400000


def total(texts):
    result = 0
    for text in texts:
        try:
            result += int(text)  # planted
        except ValueError:
            result += 1
    return result


print(total(["7", "x", "y"] * (TEXTS // 3)))

# %% planted: validation by exceptions, several functions deep
RECORDS = 60000  # 40000..90000


class Invalid(Exception):
    pass


def check_name(record):
    if not record["name"]:
        raise Invalid("name")  # planted


def check_age(record):
    if record["age"] < 0:
        raise Invalid("age")  # planted


def validate(record):
    check_name(record)  # planted
    check_age(record)  # planted


def load(records):
    good = 0
    for record in records:
        try:
            validate(record)  # planted
            good += 1
        except Invalid:
            pass
    return good


print(load([{"name": "" if number % 3 else "x", "age": -1} for number in range(RECORDS)]))

# %% planted: a wrapper that raises again
import contextlib

TIMES = 80000  # 60000..120000


@contextlib.contextmanager
def quiet():
    try:
        yield
    except LookupError:
        pass


def fetch(items, at):
    return items[at]  # planted


def scan():
    items, found = [1, 2, 3], 0
    for number in range(TIMES):
        with quiet():
            found += fetch(items, number % 40)  # planted
    return found


print(scan())

# %% planted: attributes that are missing --exceptions
OBJECTS = 300000  # 200000..500000


class Row:
    def __init__(self, number):
        if number % 20 == 0:
            self.label = str(number)


def label_of(row):
    try:
        return row.label  # planted
    except AttributeError:
        return ""


rows = [Row(number) for number in range(OBJECTS // 10)]
print(sum(len(label_of(row)) for _ in range(10) for row in rows))  # planted

# %% healthy: try without anything raised
STEPS = 1500000  # 1000000..2500000


def work(table):
    total = 0
    for number in range(STEPS):
        try:
            total += table[number % 10]
        except KeyError:
            total += 1
    return total


print(work({number: number for number in range(10)}))

# %% healthy: a few errors in a long program
STEPS = 2500000  # 2000000..4000000


def parse(text):
    if not text.isdigit():
        raise ValueError(text)
    return int(text)


def work():
    bad = 0
    for text in ["1", "x", "3"] * 100:
        try:
            bad += parse(text)
        except ValueError:
            bad -= 1
    for number in range(STEPS):
        bad += number % 5
    return bad


print(work())

# %% healthy: iterators that end
PARTS = 3000  # 2000..5000


def part(number):
    yield from range(number % 7)


def work():
    total = 0
    for number in range(PARTS):
        total += sum(part(number))
    for number in range(2_500_000):
        total += number & 1
    return total


print(work())

# %% healthy: get with a default
STEPS = 90000  # 60000..95000


def work(table):
    total = 0
    for number in range(STEPS):
        total += table.get(number, 0)
    for number in range(2_000_000):
        total ^= number
    return total


print(work({}))

# %% planted: EAFP on a dictionary in one function
STEPS = 500000  # 400000..700000


def count(words):
    found = {}
    missed = 0
    for word in words:
        try:
            found[word] += 1  # planted
        except KeyError:
            missed += 1
    return missed


print(count(range(STEPS)))

# %% planted: converting fields, a helper that catches
FIELDS = 300000  # 250000..400000


def as_number(text):
    try:
        return float(text)  # planted
    except ValueError:
        return None


def convert(rows):
    return [as_number(each) for each in rows]  # planted


print(sum(each is None for each in convert(["12.5 EUR"] * FIELDS)))

# %% planted: a nested generator that is asked for too much
TIMES = 150000  # 120000..200000


class Missing(Exception):
    pass


class Store:
    def __init__(self):
        self.items = {1: "a"}

    def get(self, key):
        try:
            return self.items[key]  # planted
        except KeyError:
            raise Missing(key) from None  # planted


def look(store):
    misses = 0
    for key in range(TIMES):
        try:
            store.get(key)  # planted
        except Missing:
            misses += 1
    return misses


print(look(Store()))

# %% planted: getattr that raises in __getattr__
TIMES = 200000  # 150000..250000


class Proxy:
    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        raise AttributeError(name)  # planted


def probe(proxy):
    return sum(hasattr(proxy, "missing") for _ in range(TIMES))  # planted


print(probe(Proxy(1)))

# %% healthy: a loop over generators and next with a default
def numbers(n):
    for each in range(n):
        yield each


total = 0
for _ in range(2000):
    total += next(numbers(3), 0)
    total += sum(numbers(60))
for each in range(1_000_000):
    total += each & 1
print(total)
