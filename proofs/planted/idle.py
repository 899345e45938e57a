# %% healthy: a server that waits for requests
import socketserver
import socket
import threading
import time

PAUSE = 0.08  # 0.05..0.15
REQUESTS = 8  # 6..12


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())


def visitor(address):
    for number in range(REQUESTS):
        time.sleep(PAUSE)
        with socket.create_connection(address) as link:
            link.sendall(b"hello\n")
            link.recv(20)
    server.shutdown()


server = socketserver.TCPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=visitor, args=(server.server_address,), daemon=True).start()
server.serve_forever()

# %% healthy: an HTTP server with a few visitors from another process
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import threading

VISITS = 6  # 4..9

CLIENT = """
import sys, time, urllib.request
for number in range(int(sys.argv[2])):
    time.sleep(0.1)
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{number}").read()
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = ",".join(str(number) for number in range(2000)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def visit(port):
    subprocess.run(["python3", "-S", "-c", CLIENT, str(port), str(VISITS)], check=True, env={"PATH": "/usr/bin:/bin"})
    server.shutdown()


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=visit, args=(server.server_port,), daemon=True).start()
server.serve_forever()

# %% healthy: a selector loop
import selectors
import socket
import threading
import time

MESSAGES = 10  # 8..15
PAUSE = 0.06  # 0.04..0.1


def talk(port):
    with socket.create_connection(("127.0.0.1", port)) as link:
        for number in range(MESSAGES):
            time.sleep(PAUSE)
            link.sendall(b"tick")
    time.sleep(PAUSE)


class Loop:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.open = True

    def accept(self):
        peer, _ = self.listener.accept()
        self.selector.register(peer, selectors.EVENT_READ, lambda: self.read(peer))

    def read(self, peer):
        if not peer.recv(100):
            self.open = False

    def run(self):
        while self.open:
            for key, _ in self.selector.select(timeout=1):
                key.data()


loop = Loop()
threading.Thread(target=talk, args=(loop.listener.getsockname()[1],), daemon=True).start()
loop.run()

# %% healthy: an asyncio server that waits
import asyncio

VISITS = 8  # 6..12
PAUSE = 0.08  # 0.05..0.12


async def handle(reader, writer):
    line = await reader.readline()
    writer.write(line)
    await writer.drain()
    writer.close()


async def visitor(port, stop):
    for _ in range(VISITS):
        await asyncio.sleep(PAUSE)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        await reader.readline()
        writer.close()
    stop.set()


async def main():
    stop = asyncio.Event()
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    asyncio.get_running_loop().create_task(visitor(server.sockets[0].getsockname()[1], stop))
    await stop.wait()
    server.close()


asyncio.run(main())

# %% healthy: an idle pool of threads beside a busy main thread
from concurrent.futures import ThreadPoolExecutor

WORKERS = 6  # 3..10
STEPS = 3000000  # 2000000..5000000


def small(number):
    return number + 1


def work():
    total = 0
    for number in range(STEPS):
        total += number % 11
    return total


with ThreadPoolExecutor(WORKERS) as pool:
    print(sum(pool.map(small, range(WORKERS))), work())

# %% healthy: a worker that waits for jobs that come now and then
import queue
import threading
import time

JOBS = 8  # 6..12
PAUSE = 0.07  # 0.05..0.1


def worker(jobs):
    while (job := jobs.get()) is not None:
        sum(range(job * 1000))


jobs = queue.Queue()
thread = threading.Thread(target=worker, args=(jobs,))
thread.start()


def on_timer(left):
    jobs.put(left)
    if left:
        timer = threading.Timer(PAUSE, on_timer, [left - 1])
        timer.start()
        timer.join()


on_timer(JOBS)
jobs.put(None)
thread.join()

# %% healthy: a pipeline of processes with back-pressure
import multiprocessing

ITEMS = 30  # 20..40
STEPS = 60000  # 40000..90000


def produce(out):
    for number in range(ITEMS):
        out.put([number] * 100)
    out.put(None)


def consume(source, result):
    total = 0
    while (item := source.get()) is not None:
        for step in range(STEPS):
            total += step % 7
    result.put(total)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    source, result = context.Queue(maxsize=3), context.Queue()
    parts = [context.Process(target=produce, args=(source,)), context.Process(target=consume, args=(source, result))]
    for part in parts:
        part.start()
    print(result.get())
    for part in parts:
        part.join()

# %% healthy: generators that pull from each other
ROWS = 12000  # 9000..20000


def read():
    for number in range(ROWS):
        yield f"{number},{number % 13}"


def parse(lines):
    for line in lines:
        left, right = line.split(",")
        total = int(right)
        for value in range(120):
            total += value * total % 7
        yield total


print(sum(parse(read())))

# %% healthy: a scheduler thread with a condition and a timer
import threading
import time

condition = threading.Condition()
stop = False


def worker():
    with condition:
        while not stop:
            condition.wait(0.1)


thread = threading.Thread(target=worker)
thread.start()
total = 0
for number in range(2_000_000):
    total += number & 3
with condition:
    stop = True
    condition.notify_all()
thread.join()

# %% healthy: a socketserver with threads and visitors in a child
import socketserver
import subprocess
import sys
import threading


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


CLIENT = """
import socket, sys, time
for _ in range(5):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    f = s.makefile("rw")
    for n in range(4):
        f.write("hi\\n"); f.flush(); f.readline(); time.sleep(0.03)
    s.close()
"""
with Server(("127.0.0.1", 0), Handler) as server:
    child = subprocess.Popen([sys.executable, "-S", "-c", CLIENT, str(server.server_address[1])])
    watch = threading.Thread(target=lambda: (child.wait(), server.shutdown()))
    watch.start()
    server.serve_forever(poll_interval=0.1)
    watch.join()

# %% healthy: a multiprocessing queue with a consumer
import multiprocessing
import time


def consume(jobs, done):
    while (job := jobs.get()) is not None:
        done.put(sum(k * k for k in range(job)))


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    jobs, done = context.Queue(), context.Queue()
    child = context.Process(target=consume, args=(jobs, done))
    child.start()
    for n in range(12):
        jobs.put(50_000 + n)
    print(sum(done.get() for _ in range(12)))
    jobs.put(None)
    child.join()

# %% healthy: cooperative generators in a round robin
from collections import deque


def task(n, steps):
    total = 0
    for step in range(steps):
        total += sum(range(200 + n))
        yield total


def run(tasks):
    ready = deque(tasks)
    while ready:
        each = ready.popleft()
        try:
            next(each)
        except StopIteration:
            continue
        ready.append(each)


run([task(n, 800) for n in range(10)])

# %% healthy: a parser of moderate functions
import ast
import textwrap

SOURCE = textwrap.dedent("""
def f(a, b):
    total = 0
    for x in range(a):
        total += x * b
    return total
""") * 60


class Names(ast.NodeVisitor):
    def __init__(self):
        self.found = set()

    def visit_Name(self, node):
        self.found.add(node.id)


def main():
    names = Names()
    for _ in range(6):
        names.visit(ast.parse(SOURCE))
    print(len(names.found))


main()

# %% healthy: a matrix product in plain Python
N = 110  # 90..130


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


a = [[i * j % 10 for j in range(N)] for i in range(N)]
print(product(a, a)[0][0])

# %% healthy: a text index with dictionaries and regular expressions
import collections
import re

word = re.compile(r"\w+")
text = " ".join(f"word{n % 500} and more {n}" for n in range(40000))


def index(text):
    found = collections.Counter()
    for line in re.split(r"(?<=0) ", text):
        for each in word.findall(line):
            found[each.lower()] += 1
    return found


print(len(index(text)))

# %% healthy: writing and reading a CSV file
import csv

ROWS = 60000  # 50000..80000


def write():
    with open("t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        for n in range(ROWS):
            writer.writerow([n, n * 2, f"name {n}"])


def read():
    with open("t.csv", newline="") as file:
        return sum(int(row[1]) for row in csv.reader(file))


write()
print(read())
