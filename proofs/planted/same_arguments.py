# %% planted: a lookup of one key again and again --record-args lookup
CALLS = 400  # 300..800


def lookup(key):
    return sum(range(20_000 + key))


def answer():
    return sum(lookup(7) for _ in range(CALLS))  # planted


print(answer())

# %% planted: a rate that is computed for each order --record-args rate
ORDERS = 300  # 200..500


class Shop:
    def rate(self, country):
        total, size = 0, len(country)
        for step in range(12_000):
            total += step % size
        return total

    def bill(self, orders):
        amount = 0
        for country in orders:
            amount += self.rate(country)  # planted
        return amount


print(Shop().bill(["de", "fr", "it"][number % 3] + "x" for number in range(ORDERS)))

# %% planted: a decorated parser of the same text --record-args parse
import functools
import json

TIMES = 250  # 150..400
TEXT = json.dumps(list(range(40)))


def checked(function):
    @functools.wraps(function)
    def inner(text):
        result = function(text)
        if not result:
            raise ValueError(text)
        return result

    return inner


@checked
def parse(text):
    for _ in range(100):
        value = json.loads(text)
    return value


def handle_all():
    total = 0
    for _ in range(TIMES):
        total += len(parse(TEXT))  # planted
    return total


print(handle_all())

# %% planted: a recursive count without a memory --record-args paths
SIZE = 10  # 9..11


def paths(right, down):
    if right == 0 or down == 0:
        return 1
    return paths(right - 1, down) + paths(right, down - 1)  # planted


print(paths(SIZE, SIZE - 2))

# %% healthy: different arguments each time --record-args lookup
CALLS = 300  # 200..500


def lookup(key):
    return sum(range(20_000 + key))


print(sum(lookup(number) for number in range(CALLS)))

# %% healthy: remembered by lru_cache --record-args rate
import functools

ORDERS = 200000  # 150000..300000


@functools.lru_cache
def rate(country):
    return sum(range(30_000)) % len(country)


def bill():
    total = 0
    for number in range(ORDERS):
        total += number * (rate("de") if number % 1000 == 0 else 3)
    for number in range(2_000_000):
        total ^= number
    return total


print(bill())

# %% healthy: a few repetitions --record-args load
STEPS = 400000  # 300000..700000


def load(name):
    total, size = 0, len(name)
    for number in range(STEPS):
        total += number % size
    return total


print(sum(load(name) for name in ["a", "bb", "ccc", "a", "bb"]))

# %% healthy: quick repetitions beside long work --record-args tag
CALLS = 500  # 300..900
STEPS = 3000000  # 2500000..4000000


def tag(name):
    return name.upper()


def work():
    total = 0
    for number in range(STEPS):
        total += number % 7
    return total


print(len([tag("x") for _ in range(CALLS)]), work())

# %% planted: a factorial that each row asks for --record-args factorial
ROWS = 3000  # 2000..4000


def factorial(n):
    result = 1
    for each in range(2, n):
        result *= each
    return result


class Table:
    def __init__(self, rows):
        self.rows = rows

    def weights(self):
        return [factorial(300) % row for row in self.rows]  # planted


print(len(Table(range(1, ROWS)).weights()))

# %% planted: a settings file that is parsed for each request --record-args parse
REQUESTS = 400  # 300..500


def parse(text):
    found = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        found[key] = value
    return found


def handle(text, number):
    settings = parse(text)  # planted
    return settings.get(f"k{number}")


text = "\n".join(f"k{n}=v{n}" for n in range(2000))
print(sum(bool(handle(text, n)) for n in range(REQUESTS)))

# %% healthy: other arguments each time --record-args area
import math


def area(n):
    return sum(math.sqrt(n * k) for k in range(300))


print(sum(area(n) for n in range(2000)))
