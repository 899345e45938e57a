# %% planted: rendering in a handler
import asyncio
import hashlib

REQUESTS = 10  # 8..16
ROUNDS = 120000  # 90000..200000


def render(number):
    digest = b""
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest + b"x").digest()  # planted
    return digest


async def heartbeat():
    for _ in range(30):
        await asyncio.sleep(0.01)


async def handle(number):
    await asyncio.sleep(0.02)
    if number % 3 == 0:
        render(number)  # planted
    await asyncio.sleep(0.01)


async def main():
    beat = asyncio.create_task(heartbeat())
    await asyncio.gather(*(handle(number) for number in range(REQUESTS)))
    await beat


asyncio.run(main())

# %% planted: sorting all rows for each request, in a class
import asyncio
import random

ROWS = 150000  # 120000..200000
REQUESTS = 8  # 6..10


class Ranking:
    def __init__(self):
        self.scores = [random.random() for _ in range(ROWS)]

    def top(self):
        return sorted(self.scores, key=lambda score: -score)[:10]  # planted

    async def answer(self, request):
        await asyncio.sleep(0.001)
        best = self.top()  # planted
        await asyncio.sleep(0.001)
        return best[0]


async def watch(period):
    while True:
        await asyncio.sleep(period)


async def main():
    ranking = Ranking()
    watching = asyncio.ensure_future(watch(0.004))
    for request in range(REQUESTS):
        await ranking.answer(request)
    watching.cancel()


asyncio.run(main())

# %% planted: parsing a large document in a callback
import asyncio
import json

DOCUMENTS = 6  # 5..8
SIZE = 70000  # 60000..110000


def on_message(loop, text, done):
    records = json.loads(text)  # planted
    total = sum(record["id"] for record in records)  # planted
    if total < 0:
        loop.stop()
    done.append(total)


async def main():
    loop = asyncio.get_running_loop()
    text = json.dumps([{"id": number, "name": f"n{number}", "tags": ["a", "b"]} for number in range(SIZE)])  # planted
    done = []
    for number in range(DOCUMENTS):
        loop.call_later(0.01 * number, on_message, loop, text, done)
    while len(done) < DOCUMENTS:
        await asyncio.sleep(0.005)
    print(len(done))


asyncio.run(main())

# %% planted: a comprehension over everything, in an async generator
import asyncio

BATCHES = 8  # 6..10
SIZE = 700000  # 600000..1000000


async def batches():
    for number in range(BATCHES):
        await asyncio.sleep(0.003)
        yield number


def features(batch):
    return sum([(value * batch) % 11 for value in range(SIZE)])  # planted


async def ticks():
    while True:
        await asyncio.sleep(0.004)


async def main():
    ticking = asyncio.create_task(ticks())
    total = 0
    async for batch in batches():
        total += features(batch)  # planted
    ticking.cancel()
    print(total)


asyncio.run(main())

# %% healthy: work in small pieces
import asyncio

PIECES = 300  # 200..500


async def compute(total=0):
    for piece in range(PIECES):
        total += sum(range(piece * 10))
        await asyncio.sleep(0)
    return total


async def main():
    print(await asyncio.gather(*(compute() for _ in range(3))))


asyncio.run(main())

# %% healthy: computing before the loop begins
import asyncio

STEPS = 2000000  # 1500000..3000000


def prepare():
    total = 0
    for number in range(STEPS):
        total += number % 17
    return total


async def serve(total):
    for _ in range(30):
        await asyncio.sleep(0.003)
    return total


print(asyncio.run(serve(prepare())))

# %% healthy: computing in another process
import asyncio
import concurrent.futures
import multiprocessing

STEPS = 700000  # 500000..1000000


def compute(seed):
    total = seed
    for number in range(STEPS):
        total += number % 17
    return total


async def ticks():
    while True:
        await asyncio.sleep(0.01)


async def main():
    ticking = asyncio.create_task(ticks())
    loop = asyncio.get_running_loop()
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        print(await asyncio.gather(*(loop.run_in_executor(pool, compute, seed) for seed in range(2))))
    ticking.cancel()


if __name__ == "__main__":
    asyncio.run(main())

# %% healthy: a web-like server with short handlers
import asyncio

CLIENTS = 5  # 4..8
REQUESTS = 40  # 30..60


async def handle(reader, writer):
    while request := await reader.readline():
        body = ",".join(str(number) for number in range(200))
        writer.write(request.strip() + body.encode() + b"\n")
        await writer.drain()
    writer.close()


async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(REQUESTS):
        writer.write(b"get\n")
        await reader.readline()
    writer.close()


async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    await asyncio.gather(*(client(server.sockets[0].getsockname()[1]) for _ in range(CLIENTS)))
    server.close()


asyncio.run(main())

# %% planted: compressing answers in a coroutine
import asyncio
import lzma
import random

ANSWERS = 10  # 8..14
data = random.Random(3).randbytes(300_000)


async def answer(number):
    body = lzma.compress(data, preset=6)  # planted
    await asyncio.sleep(0)
    return len(body)


async def beat():
    for _ in range(20):
        await asyncio.sleep(0.005)


async def main():
    task = asyncio.create_task(beat())
    for number in range(ANSWERS):
        await answer(number)
        await asyncio.sleep(0.001)
    await task


asyncio.run(main())

# %% planted: a nested helper that validates everything
import asyncio

ROWS = 40000  # 30000..60000


def is_valid(row):
    return row % 7 != 3 and row >= 0


def validate(rows):
    return [row for row in rows if is_valid(row)]  # planted


class View:
    async def get(self):
        rows = range(ROWS)
        return len(self.select(rows))  # planted

    def select(self, rows):
        kept = []
        for _ in range(8):
            kept += validate(rows)  # planted
        return kept


async def client(view):
    for _ in range(4):
        await asyncio.sleep(0.01)
        await view.get()  # planted


async def main():
    view = View()
    await asyncio.gather(client(view), client(view), *(asyncio.sleep(0.01 * n) for n in range(10)))


asyncio.run(main())

# %% planted: json in a protocol's callback
import asyncio
import json

MESSAGES = 8  # 6..10
text = json.dumps([{"n": n, "text": "x" * 20} for n in range(90000)])


class Protocol(asyncio.Protocol):
    def __init__(self):
        self.size = 0

    def data_received(self, data):
        rows = json.loads(text)  # planted
        self.size += len(json.dumps(rows))  # planted


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    for _ in range(MESSAGES):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)
    writer.close()
    server.close()


asyncio.run(main())

# %% healthy: computing with pauses for the loop
import asyncio


def piece(first):
    return sum(n * n for n in range(first, first + 4000))


async def work():
    total = 0
    for first in range(0, 1_200_000, 4000):
        total += piece(first)
        await asyncio.sleep(0)
    return total


async def beat():
    for _ in range(20):
        await asyncio.sleep(0.01)


async def main():
    print(await asyncio.gather(work(), beat()))


asyncio.run(main())
