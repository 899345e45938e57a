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
