# %% planted: a sleep at import
import config  # planted

print(config.SETTINGS)
# file: config.py
import time

PAUSE = 0.4  # 0.25..0.8


def discover():
    time.sleep(PAUSE)  # planted
    return {"region": "north"}


SETTINGS = discover()  # planted

# %% planted: a table that is computed when the module is loaded
import shop  # planted


def main():
    print(shop.price(3))


main()
# file: shop/__init__.py
from .prices import price  # planted
# file: shop/prices.py
from .table import TABLE  # planted


def price(number):
    return TABLE[number]
# file: shop/table.py
SIZE = 1500000  # 1000000..2500000

TABLE = {number: number * number % 97 for number in range(SIZE)}  # planted

# %% planted: an import inside a function
def handle(request):
    from plugins import render  # planted

    return render(request)


print([handle(number) for number in range(3)])
# file: plugins.py
import json

SIZE = 500000  # 400000..700000

text = json.dumps(list(range(SIZE)))
KNOWN = [json.loads(text) for _ in range(8)]  # planted


def render(request):
    return request + len(KNOWN)

# %% planted: a module that asks a child process for its version
import tool

print(tool.VERSION)
# file: tool.py
import subprocess

PAUSE = 0.35  # 0.25..0.6

subprocess.run(["sleep", str(PAUSE)], check=True)  # planted
VERSION = "1.2"

# %% planted: importlib loads a plugin with a large class body
import importlib


class Registry:
    def __init__(self, names):
        self.plugins = {name: importlib.import_module(name) for name in names}  # planted

    def run(self):
        return {name: plugin.Plugin.size for name, plugin in self.plugins.items()}


print(Registry(["plugin_small", "plugin_large"]).run())
# file: plugin_small.py
class Plugin:
    size = 1
# file: plugin_large.py
STEPS = 4000000  # 3000000..5000000


class Plugin:
    size = 0
    for number in range(STEPS):
        size += number & 3  # planted

# %% healthy: quick imports, then work
import helper

STEPS = 2500000  # 2000000..4000000


def main():
    total = 0
    for number in range(STEPS):
        total += helper.weight(number) if number % 1000 == 0 else 1
    return total


print(main())
# file: helper.py
def weight(number):
    return number % 5

# %% healthy: the standard library, then work
import argparse
import csv
import datetime
import io
import json

ROWS = 150000  # 120000..250000


def main():
    argparse.ArgumentParser().parse_args([])
    text = io.StringIO("\n".join([f"{number},{number * 2},n{number}" for number in range(ROWS)]))
    total = 0
    for row in csv.reader(text):
        total += int(row[0]) * int(row[1]) % 7
    return json.dumps({"total": total, "year": datetime.date(2026, 1, 1).year})


print(main())

# %% healthy: a lazy import that is quick
STEPS = 2000000  # 1500000..3000000


def export(values):
    import base64

    return base64.b64encode(bytes(values))


def compute():
    total = 0
    for number in range(STEPS):
        total ^= number
    return [total % 256] * 10


print(export(compute()))

# %% healthy: a package with several modules
import shop

STEPS = 2000000  # 1500000..3000000


def run():
    value = 0
    for number in range(STEPS):
        value += number % 3
    return shop.tax(value)


print(run())
# file: shop/__init__.py
from .prices import tax
# file: shop/prices.py
from .rates import RATE


def tax(value):
    return value * RATE
# file: shop/rates.py
RATE = 19

# %% planted: a configuration that is read from a slow place at import
import settings  # planted


def work():
    return sum(n * n for n in range(400_000))


print(work(), settings.VALUES)
# file: settings.py
import backend  # planted

VALUES = backend.read_all()  # planted
# file: backend.py
import time


def read_all():
    time.sleep(0.7)  # planted
    return {"a": 1}

# %% planted: a lazy import in a method of a class
import sys


class Reporter:
    def write(self):
        from plugins import drawing  # planted

        return drawing.draw(3)


total = sum(n % 7 for n in range(500_000))
print(Reporter().write(), total)
# file: plugins/__init__.py
NAME = "plugins"
# file: plugins/drawing.py
import re

PATTERNS = [re.compile(f"(a{n}|b{n})+c[{n % 10}-9]*(x|y|z{n})?") for n in range(700)]  # planted


def draw(n):
    return len(PATTERNS) * n

# %% healthy: a module that is quick, and work
import helper

print(helper.work(1_500_000))
# file: helper.py
def work(steps):
    total = 0
    for number in range(steps):
        total += number & 3
    return total
