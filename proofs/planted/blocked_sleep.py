# %% planted: time.sleep in a handler
import asyncio
import time

REQUESTS = 12  # 8..20
PAUSE = 0.12  # 0.08..0.2


async def heartbeat():
    for _ in range(40):
        await asyncio.sleep(0.01)


async def handle(number):
    await asyncio.sleep(0.03)
    if number % 3 == 0:
        time.sleep(PAUSE)  # planted
    await asyncio.sleep(0.01)
    return number


async def main():
    beat = asyncio.create_task(heartbeat())
    print(sum(await asyncio.gather(*[handle(number) for number in range(REQUESTS)])))
    await beat


asyncio.run(main())

# %% planted: a blocking client in a coroutine
import asyncio
import socket
import threading
import time

CALLS = 8  # 6..12
DELAY = 0.09  # 0.07..0.15


def slow_service(listener):
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            peer.recv(64)
            time.sleep(DELAY)
            peer.sendall(b"42")


class Client:
    def __init__(self, port):
        self.port = port

    def lookup(self, key):
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(key.encode())
            return link.recv(64)  # planted

    async def get(self, key):
        await asyncio.sleep(0.005)
        return self.lookup(key)  # planted


async def ticker(stop):
    while not stop.is_set():
        await asyncio.sleep(0.005)


async def main(port):
    stop = asyncio.Event()
    ticking = asyncio.create_task(ticker(stop))
    client = Client(port)
    for number in range(CALLS):
        print(await client.get(f"key{number}"), end=" ")
    stop.set()
    await ticking


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=slow_service, args=(listener,), daemon=True).start()
asyncio.run(main(listener.getsockname()[1]))
listener.close()

# %% planted: subprocess.run in an asyncio server
import asyncio
import subprocess

JOBS = 5  # 4..8
SECONDS = 0.15  # 0.1..0.25


def convert(number):
    return subprocess.run(["sleep", str(SECONDS)], check=True).returncode + number  # planted


async def handler(reader, writer):
    line = await reader.readline()
    writer.write(str(convert(int(line))).encode() + b"\n")  # planted
    await writer.drain()
    writer.close()


async def ask(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d\n" % number)
    answer = await reader.readline()
    writer.close()
    return int(answer)


async def main():
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(ask(port, number) for number in range(JOBS))))
    server.close()


asyncio.run(main())

# %% planted: requests by urllib from a coroutine
import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

PAGES = 6  # 5..9
DELAY = 0.1  # 0.07..0.16


class Slow(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(DELAY)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


async def download(base, page):
    await asyncio.sleep(0)
    return urlopen(f"{base}/{page}").read()  # planted


async def main(base):
    ticks = asyncio.create_task(tick())
    pages = [await download(base, page) for page in range(PAGES)]
    ticks.cancel()
    print(len(pages))


async def tick():
    while True:
        await asyncio.sleep(0.01)


server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
threading.Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(main(f"http://127.0.0.1:{server.server_port}"))
server.shutdown()

# %% healthy: coroutines that sleep as coroutines do
import asyncio

ROUNDS = 60  # 40..90


async def handle(number):
    for _ in range(ROUNDS):
        await asyncio.sleep(0.005)
    return number


async def main():
    print(sum(await asyncio.gather(*(handle(number) for number in range(10)))))


asyncio.run(main())

# %% healthy: an asyncio server and its clients
import asyncio

CLIENTS = 6  # 4..10
ROUNDS = 30  # 20..50


async def serve(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.002)
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def talk(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(ROUNDS):
        writer.write(b"hello %d\n" % number)
        await reader.readline()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(talk(port) for _ in range(CLIENTS)))
    server.close()


asyncio.run(main())

# %% healthy: blocking calls in threads
import asyncio
import time

CALLS = 8  # 6..12
PAUSE = 0.08  # 0.05..0.12


def blocking(number):
    time.sleep(PAUSE)
    return number


async def main():
    beats = asyncio.create_task(beat())
    print(sum(await asyncio.gather(*(asyncio.to_thread(blocking, number) for number in range(CALLS)))))
    beats.cancel()


async def beat():
    while True:
        await asyncio.sleep(0.01)


asyncio.run(main())

# %% healthy: a queue between producer and consumers
import asyncio

ITEMS = 80  # 60..120


async def produce(queue):
    for number in range(ITEMS):
        await asyncio.sleep(0.003)
        await queue.put(number)
    for _ in range(3):
        await queue.put(None)


async def consume(queue):
    total = 0
    while (number := await queue.get()) is not None:
        total += sum(range(number))
        await asyncio.sleep(0.002)
    return total


async def main():
    queue = asyncio.Queue(maxsize=4)
    results = await asyncio.gather(produce(queue), *(consume(queue) for _ in range(3)))
    print(sum(results[1:]))


asyncio.run(main())

# %% planted: a lock of threading in a coroutine
import asyncio
import threading
import time

lock = threading.Lock()


def keeper():
    for _ in range(10):
        with lock:
            time.sleep(0.1)
        time.sleep(0.001)


async def tick():
    for _ in range(40):
        await asyncio.sleep(0.005)


async def handle():
    for _ in range(8):
        await asyncio.sleep(0.003)
        with lock:  # planted
            pass


async def main():
    thread = threading.Thread(target=keeper)
    thread.start()
    await asyncio.gather(tick(), handle())
    thread.join()


asyncio.run(main())

# %% planted: a synchronous retry library below an async handler
import asyncio
import time


class Backend:
    def fetch(self, key):
        self._pause()
        return key

    def _pause(self):
        time.sleep(0.08)  # planted


class Handler:
    def __init__(self):
        self.backend = Backend()

    async def __call__(self, key):
        return self.backend.fetch(key)  # planted


async def beat(beats):
    while len(beats) < 30:
        beats.append(1)
        await asyncio.sleep(0.01)


async def main():
    handler, beats = Handler(), []
    task = asyncio.create_task(beat(beats))
    for number in range(10):
        await handler(number)  # planted
        await asyncio.sleep(0.01)
    await task


asyncio.run(main())

# %% planted: a blocking queue in a callback
import asyncio
import queue
import threading
import time

jobs = queue.Queue()


def produce():
    for number in range(8):
        time.sleep(0.1)
        jobs.put(number)


def take(found):
    found.append(jobs.get())  # planted


async def main():
    loop, found = asyncio.get_running_loop(), []
    thread = threading.Thread(target=produce)
    thread.start()
    for _ in range(8):
        loop.call_soon(take, found)
        await asyncio.sleep(0.002)
    thread.join()
    print(found)


asyncio.run(main())

# %% healthy: an event loop in a thread beside a blocking main thread
import asyncio
import threading
import time


async def work():
    total = 0
    for _ in range(60):
        await asyncio.sleep(0.01)
        total += sum(range(3000))
    return total


thread = threading.Thread(target=lambda: print(asyncio.run(work())))
thread.start()
total = 0
for number in range(1_500_000):
    total += number % 3
thread.join()

# %% healthy: a websocket-like server that pings
import asyncio

PINGS = 60  # 40..80


async def serve(reader, writer):
    while data := await reader.read(64):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    for _ in range(PINGS):
        writer.write(b"ping")
        await reader.read(64)
        await asyncio.sleep(0.01)
    writer.close()


asyncio.run(main())
