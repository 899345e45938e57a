# %% planted: a line for each record
import io
import logging

RECORDS = 40000  # 30000..60000

logging.basicConfig(stream=io.StringIO(), level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("import")


def parse(number):
    log.info("record %d is %s", number, number % 7)  # planted
    return number % 7


def main():
    return sum(parse(number) for number in range(RECORDS))


print(main())

# %% planted: debug lines to a file, in a class
import logging
import tempfile

STEPS = 25000  # 20000..40000


class Solver:
    def __init__(self, path):
        self.log = logging.Logger("solver", logging.DEBUG)
        self.log.addHandler(logging.FileHandler(path))

    def step(self, value):
        value = (value * 31 + 7) % 1009
        self.log.debug(f"value is now {value}")  # planted
        return value

    def solve(self):
        value = 1
        for _ in range(STEPS):
            value = self.step(value)
        return value


with tempfile.NamedTemporaryFile() as file:
    print(Solver(file.name).solve())

# %% planted: print in the inner loop
import sys

ROWS = 700  # 600..1000
COLUMNS = 300  # 250..400
out = open("/dev/null", "w")


def show(matrix):
    total = 0
    for row in range(ROWS):
        for column in range(COLUMNS):
            total += row ^ column
            print("cell", row, column, total, file=out, flush=matrix)  # planted
    return total


print(show(True))

# %% planted: debug messages that nobody sees, whose text is made
import logging

ORDERS = 60000  # 50000..90000
logger = logging.getLogger(__name__)


def describe(order):
    return ", ".join(f"{key}={value!r}" for key, value in order.items())


def ship(order):
    logger.debug("shipping %s", describe(order))  # planted
    return order["id"]


def main():
    return sum(ship({"id": number, "city": "Ulm", "items": [1, 2]}) for number in range(ORDERS))


print(main())

# %% planted: warnings with a stack for each row
import io
import logging

ROWS = 3000  # 2500..5000
handler = logging.StreamHandler(io.StringIO())
logger = logging.getLogger("rows")
logger.addHandler(handler)


def check(row):
    if row % 2:
        logger.warning("row %d is not even", row, stack_info=True)  # planted
    return row


def check_all():
    for row in range(ROWS):
        check(row)


check_all()

# %% planted: sys.stdout.write for each line, flushed
import os
import sys

LINES = 120000  # 90000..200000
null = open(os.devnull, "w")


class Progress:
    def __init__(self, stream):
        self.stream = stream

    def update(self, done):
        self.stream.write(f"\r{done} done")  # planted
        self.stream.flush()  # planted


def main():
    progress = Progress(null)
    total = 0
    for number in range(LINES):
        total += number % 3
        progress.update(number)  # planted
    return total


print(main())

# %% healthy: a line for each thousand
import io
import logging

STEPS = 3000000  # 2000000..5000000

logging.basicConfig(stream=io.StringIO(), level=logging.INFO)
log = logging.getLogger("work")


def main():
    total = 0
    for number in range(STEPS):
        total += number % 7
        if number % 100_000 == 0:
            log.info("at %d", number)
    return total


print(main())

# %% healthy: a few debug calls that are off
import logging

CALLS = 3000  # 2000..5000
log = logging.getLogger("quiet")


def step(number):
    log.debug("step %d", number)
    total = 0
    for value in range(700):
        total += value ^ number
    return total


print(sum(step(number) for number in range(CALLS)))

# %% healthy: a report that is printed at the end
ROWS = 300  # 200..500


def compute():
    totals = []
    for row in range(ROWS):
        total = 0
        for value in range(8000):
            total += value % (row + 1)
        totals.append(total)
    return totals


for row, total in enumerate(compute()):
    print(row, total)

# %% healthy: a log of start and end
import logging
import sys

STEPS = 3000000  # 2000000..5000000

logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)


def work():
    logging.info("begin")
    total = 0
    for number in range(STEPS):
        total += number % 7
    logging.info("end")
    return total


print(work())

# %% planted: an adapter around a logger, in an inner loop
import logging

ROWS = 20000  # 15000..25000
logging.basicConfig(filename="adapter.log", level=logging.INFO)


class Audit:
    def __init__(self):
        self.log = logging.LoggerAdapter(logging.getLogger("audit"), {"user": "u"})

    def row(self, n):
        self.log.info("row %d done", n)  # planted


def main():
    audit, total = Audit(), 0
    for n in range(ROWS):
        total += n * n
        audit.row(n)  # planted
    return total


print(main())

# %% planted: a progress bar on stderr
import sys

STEPS = 60000  # 50000..80000


def progress(done, whole):
    sys.stderr.write(f"\r{done}/{whole}")  # planted
    sys.stderr.flush()  # planted


def main():
    total = 0
    for n in range(STEPS):
        total += n % 7
        progress(n, STEPS)  # planted
    return total


print(main())

# %% planted: print to a file, through a helper
STEPS = 120000  # 90000..150000


def trace(file, *args):
    print(*args, file=file)  # planted


def main():
    with open("trace.txt", "w") as file:
        total = 0
        for n in range(STEPS):
            total += n
            trace(file, "n", n, total)  # planted
    return total


print(main())

# %% healthy: debug that is off, guarded
import logging

log = logging.getLogger("x")


def main():
    total = 0
    for n in range(2_000_000):
        total += n & 5
        if n % 100_000 == 0:
            log.debug("at %d", n)
    return total


print(main())
