# %% planted: a tiny function in a loop
CALLS = 700000  # 500000..1500000


def clamp(value):
    return value if value < 100 else 100


def total():
    result = 0
    for number in range(CALLS):
        result += clamp(number)  # planted
    return result


print(total())

# %% planted: a property of each point
from dataclasses import dataclass

POINTS = 250000  # 200000..500000


@dataclass
class Point:
    x: int
    y: int

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y


def sweep(points):
    longest = 0
    for point in points:
        if point.norm > longest:  # planted
            longest = point.norm  # planted
    return longest


points = [Point(number, number % 100) for number in range(POINTS // 5)]
print(max(sweep(points) for _ in range(5)))

# %% planted: a lambda as a key
ROWS = 150000  # 100000..250000


def rank(rows):
    for _ in range(6):
        rows = sorted(rows, key=lambda row: row[1])  # planted
    return rows


print(rank([(number, -number % 1009) for number in range(ROWS)])[0])

# %% planted: a comparison in Python
CARDS = 40000  # 30000..60000


class Card:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


def deal(count):
    hand = [Card(number * 7919 % 10007) for number in range(count)]
    hand.sort()  # planted
    return hand[0].value


print(deal(CARDS))

# %% planted: a method of a string for each letter
LETTERS = 900000  # 700000..1500000


def clean(text):
    kept = []
    for letter in text:
        if letter.isalnum():  # planted
            kept.append(letter)  # planted
    return "".join(kept)


print(len(clean("ab c-" * (LETTERS // 5))))

# %% planted: a generator that passes one value on
VALUES = 600000  # 400000..1200000


def doubled(values):
    for value in values:
        yield value * 2


def consume():
    total = 0
    for value in doubled(range(VALUES)):  # planted
        total += value
    return total


print(consume())

# %% healthy: larger functions
CALLS = 1500  # 1000..2500


def score(number):
    total = 0
    for step in range(number, number + 2000):
        total += step
    return total


print(sum(score(number) for number in range(CALLS)))

# %% healthy: no calls at all
STEPS = 4000000  # 3000000..6000000

total = 0
for number in range(STEPS):
    total += number * number
print(total)

# %% healthy: recursion of moderate size
def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)


STEPS = 2500000  # 2000000..4000000


def work():
    total = 0
    for number in range(STEPS):
        total += number
    return total


print(fib(15) + work())

# %% healthy: a few ten thousand short calls in a long program
CALLS = 30000  # 20000..50000
STEPS = 3000000  # 2500000..4000000


def tag(number):
    return number % 3


def work():
    total = sum(tag(number) for number in range(CALLS))
    for number in range(STEPS):
        total += number & 1
    return total


print(work())

# %% planted: a property through a descriptor
STEPS = 400000  # 300000..500000


class Meters:
    def __init__(self, feet):
        self.feet = feet

    @property
    def value(self):
        return self.feet * 0.3


def total(lengths):
    result = 0
    for _ in range(STEPS // 100):
        for each in lengths:
            result += each.value  # planted
    return result


print(total([Meters(n) for n in range(100)]))

# %% planted: a partial in map
from functools import partial

STEPS = 500000  # 400000..600000


def scale(factor, value):
    return factor * value


def run():
    return sum(map(partial(scale, 3), range(STEPS)))  # planted


print(run())

# %% planted: an operator of a class
STEPS = 300000  # 250000..400000


class Vector:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Vector(self.x + other.x)  # planted


def add_all():
    total = Vector(0)
    one = Vector(1)
    for _ in range(STEPS):
        total = total + one  # planted
    return total.x


print(add_all())

# %% healthy: few calls of a large function
def large(n):
    return sum(k * k for k in range(n))


print(sum(large(8000) for _ in range(150)))
