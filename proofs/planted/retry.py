# %% planted: a connection that is refused at first
import socket
import time

TRIES = 6  # 4..8
PAUSE = 0.1  # 0.08..0.2


def connect(port):
    for attempt in range(TRIES):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1)  # planted
        except OSError:
            time.sleep(PAUSE)  # planted
    return None


probe = socket.socket()
probe.bind(("127.0.0.1", 0))
print(connect(probe.getsockname()[1]))

# %% planted: a decorator with exponential backoff
import functools
import time

FIRST = 0.03  # 0.02..0.05
FAILURES = 5  # 4..6


class Busy(Exception):
    pass


def retry(times, first):
    def decorate(function):
        @functools.wraps(function)
        def inner(*args):
            pause = first
            for _ in range(times):
                try:
                    return function(*args)  # planted
                except Busy:
                    time.sleep(pause)  # planted
                    pause *= 2
            raise TimeoutError

        return inner

    return decorate


calls = []


@retry(10, FIRST)
def reserve(seat):
    calls.append(seat)
    if len(calls) % (FAILURES + 1):
        raise Busy  # planted
    return seat


print(reserve("12A"))

# %% planted: a client class that tries each request again
import random
import time

PAUSE = 0.05  # 0.03..0.08
REQUESTS = 12  # 10..20


class Unavailable(Exception):
    pass


class Client:
    def __init__(self):
        self.count = 0

    def send(self, request):
        self.count += 1
        if self.count % 3:
            raise Unavailable(request)  # planted
        return request

    def ask(self, request):
        while True:
            try:
                return self.send(request)  # planted
            except Unavailable:
                self.back_off()  # planted

    def back_off(self):
        time.sleep(PAUSE)  # planted


client = Client()
print(sum(client.ask(request) for request in range(REQUESTS)))

# %% planted: a coroutine that tries again
import asyncio

PAUSE = 0.1  # 0.06..0.15
TRIES = 8  # 6..12


async def fetch(attempt):
    await asyncio.sleep(0.001)
    if attempt < TRIES:
        raise ConnectionError(attempt)  # planted
    return "page"


async def fetch_with_retry():
    for attempt in range(TRIES + 1):
        try:
            return await fetch(attempt)  # planted
        except ConnectionError:
            await asyncio.sleep(PAUSE)  # planted


print(asyncio.run(fetch_with_retry()))

# %% planted: a file that is not there yet
import os
import tempfile
import threading
import time

PAUSE = 0.05  # 0.04..0.08
AFTER = 0.7  # 0.5..1.0


def read_when_there(path):
    while True:
        try:
            with open(path) as file:  # planted
                return file.read()
        except FileNotFoundError:
            time.sleep(PAUSE)  # planted


def write_later(path):
    with open(path + "~", "w") as file:
        file.write("done")
    os.rename(path + "~", path)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "result")
    threading.Timer(AFTER, write_later, [path]).start()
    print(read_when_there(path))

# %% healthy: one try that succeeds
import socket
import time

STEPS = 2500000  # 2000000..4000000


def connect(address):
    for attempt in range(5):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.05)


def work():
    total = 0
    for number in range(STEPS):
        total += number & 7
    return total


with socket.create_server(("127.0.0.1", 0)) as listener:
    connect(listener.getsockname()).close()
print(work())

# %% healthy: one pause in a long program
import time

STEPS = 3000000  # 2500000..5000000


def unsteady(attempt):
    if attempt == 0:
        raise OSError
    return attempt


def work():
    for attempt in range(3):
        try:
            unsteady(attempt)
            break
        except OSError:
            time.sleep(0.03)
    total = 0
    for number in range(STEPS):
        total += number & 7
    return total


print(work())

# %% healthy: a poll loop with a period, which works in between
import time

ROUNDS = 12  # 8..16
STEPS = 250000  # 200000..400000


def sample(total):
    for number in range(STEPS):
        total += number & 7
    return total


def main():
    total = 0
    for _ in range(ROUNDS):
        total = sample(total)
        time.sleep(0.005)
    return total


print(main())

# %% planted: a generic retry with a lambda
import time


def retrying(action, times):
    for attempt in range(times):
        try:
            return action()  # planted
        except OSError:
            time.sleep(0.1)  # planted
    return None


class Flaky:
    def __init__(self):
        self.calls = 0

    def fetch(self):
        self.calls += 1
        if self.calls < 9:
            raise ConnectionError("not yet")
        return 1


flaky = Flaky()
print(retrying(lambda: flaky.fetch(), 12))

# %% planted: exponential pauses in a loop over servers
import socket
import time


def connect(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


def find(ports):
    for port in ports:
        pause = 0.02
        for _ in range(4):
            try:
                return connect(port)  # planted
            except OSError:
                time.sleep(pause)  # planted
                pause *= 2
    return False


print(find([1, 2, 3]))

# %% planted: async retry with a helper that pauses
import asyncio


class Unready(Exception):
    pass


async def ask(n):
    await asyncio.sleep(0)
    if n < 8:
        raise Unready(n)
    return n


async def pause():
    await asyncio.sleep(0.1)  # planted


async def until_ready():
    n = 0
    while True:
        try:
            return await ask(n)  # planted
        except Unready:
            n += 1
            await pause()  # planted


print(asyncio.run(until_ready()))

# %% healthy: a scheduler that runs jobs by period
import time


def job(n):
    return sum(k * k for k in range(20000 + n))


def main():
    for n in range(25):
        job(n)
        time.sleep(0.01)


main()
