# %% planted: sqlite3, a method for each row
import sqlite3

CUSTOMERS = 1500  # 1200..2000


class Store:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.executescript("create table customer(id integer primary key, name text);"
                              "create table invoice(id integer primary key, customer integer, total real);")
        self.db.executemany("insert into customer values(?, ?)", [(i, f"c{i}") for i in range(CUSTOMERS)])
        self.db.executemany("insert into invoice values(?, ?, ?)", [(i, i % CUSTOMERS, i * 1.5) for i in range(CUSTOMERS * 3)])

    def total_of(self, customer):
        return self.db.execute("select sum(total) from invoice where customer = ?", (customer,)).fetchone()[0]  # planted

    def report(self):
        ids = [row[0] for row in self.db.execute("select id from customer")]
        return {each: self.total_of(each) for each in ids}  # planted


print(len(Store().report()))

# %% planted: sqlite3, dataclasses and a cursor in the loop
import sqlite3
from dataclasses import dataclass, field

AUTHORS = 1500  # 1200..2000


@dataclass
class Author:
    id: int
    name: str
    books: list = field(default_factory=list)


def connect(path="library.db"):
    db = sqlite3.connect(path)
    db.execute("drop table if exists author")
    db.execute("drop table if exists book")
    db.execute("create table author(id integer primary key, name text)")
    db.execute("create table book(id integer primary key, author integer, title text)")
    db.executemany("insert into author values(?, ?)", ((i, f"author {i}") for i in range(AUTHORS)))
    db.executemany("insert into book values(?, ?, ?)", ((i, i % AUTHORS, f"book {i}") for i in range(AUTHORS * 2)))
    db.commit()
    return db


def load(db):
    authors = [Author(*row) for row in db.execute("select id, name from author").fetchall()]
    cursor = db.cursor()
    for author in authors:
        cursor.execute("select title from book where author = ?", (author.id,))  # planted
        author.books = [title for (title,) in cursor.fetchall()]  # planted
    return authors


if __name__ == "__main__":
    print(sum(len(author.books) for author in load(connect())))

# %% planted: http.client, a connection for each item
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS = 300  # 150..400


class Prices(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"price": 12}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def price_of(port, item):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", f"/price/{item}")  # planted
        return len(connection.getresponse().read())  # planted
    finally:
        connection.close()


def catalogue(port):
    prices = {}
    for item in range(ITEMS):
        prices[item] = price_of(port, item)  # planted
    return prices


server = ThreadingHTTPServer(("127.0.0.1", 0), Prices)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(len(catalogue(server.server_port)))
server.shutdown()

# %% planted: urllib to a server in another process
import json
import subprocess
import sys
from urllib.request import urlopen

USERS = 120  # 80..200
SERVER = """
import http.server, json, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.003)
        body = json.dumps({"user": self.path}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def fetch(base, user):
    with urlopen(f"{base}/users/{user}") as answer:  # planted
        return json.load(answer)


def main():
    child = subprocess.Popen([sys.executable, "-S", "-c", SERVER], stdout=subprocess.PIPE, text=True)
    base = f"http://127.0.0.1:{child.stdout.readline().strip()}"
    try:
        found = [fetch(base, user) for user in range(USERS)]  # planted
        print(len(found))
    finally:
        child.kill()
        child.wait()


main()

# %% planted: a line protocol on a socket
import socket
import threading
import time

KEYS = 400  # 250..800
DELAY = 0.001  # 0.0005..0.003


def serve(listener):
    peer, _ = listener.accept()
    with peer, peer.makefile("rwb") as stream:
        for line in stream:
            time.sleep(DELAY)
            stream.write(b"+" + line)
            stream.flush()


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.answers = self.socket.makefile("rb")

    def get(self, key):
        self.socket.sendall(f"GET {key}\n".encode())
        return self.answers.readline().strip()  # planted

    def close(self):
        self.answers.close()
        self.socket.close()


def warm(client, keys):
    cached = {}
    for key in keys:
        value = client.get(key)  # planted
        if value:
            cached[key] = value
    return cached


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
client = Client(listener.getsockname()[1])
print(len(warm(client, [f"session:{n}" for n in range(KEYS)])))
client.close()

# %% planted: a driver that executes, fetches and sleeps
import time

ROWS = 600  # 400..1200
LATENCY = 0.0004  # 0.0003..0.0008


class Cursor:
    def execute(self, query, *values):
        time.sleep(LATENCY)
        self.rows = [(value,) for value in values]

    def fetchall(self):
        time.sleep(LATENCY)
        return self.rows


def repository(function):
    def inner(*args):
        return function(Cursor(), *args)

    return inner


@repository
def orders_of(cursor, customer):
    cursor.execute("select * from orders where customer = ?", customer)
    return cursor.fetchall()


def build():
    summary = []
    for customer in range(ROWS):
        summary.append((customer, orders_of(customer)))  # planted
        time.sleep(0.0001)
    return summary


def score():
    return sum(value * value for value in range(1_500_000))


print(len(build()), score())

# %% planted: a small file for each record
import json
import tempfile
from pathlib import Path

FILES = 4000  # 3000..6000


def write_all(folder):
    for number in range(40):
        (folder / f"{number}.json").write_text(json.dumps({"number": number}))


def settings(folder, number):
    with open(folder / f"{number % 40}.json") as file:  # planted
        return json.load(file)


def totals(folder):
    return sum(settings(folder, number)["number"] for number in range(FILES))  # planted


with tempfile.TemporaryDirectory() as place:
    write_all(Path(place))
    print(totals(Path(place)))

# %% healthy: sqlite3, one join
import sqlite3

CUSTOMERS = 30000  # 20000..60000

db = sqlite3.connect(":memory:")
db.execute("create table customer(id integer primary key, name text)")
db.execute("create table invoice(id integer primary key, customer integer, total real)")
db.executemany("insert into customer values(?, ?)", [(i, f"c{i}") for i in range(CUSTOMERS)])
db.executemany("insert into invoice values(?, ?, ?)", [(i, i % CUSTOMERS, i * 1.5) for i in range(CUSTOMERS * 3)])


def report():
    query = "select name, sum(total) from customer join invoice on invoice.customer = customer.id group by customer.id"
    return dict(db.execute(query).fetchall())


def spread(totals):
    mean = sum(totals.values()) / len(totals)
    return sum((value - mean) ** 2 for value in totals.values())


print(round(spread(report())))

# %% healthy: five requests, then work on the answers
import http.client
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

WORK = 600000  # 400000..1200000


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"x" * 5000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Pages)
threading.Thread(target=server.serve_forever, daemon=True).start()


def page(number):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", f"/{number}")
    return connection.getresponse().read()


def count(text):
    total, size = 0, len(text)
    for number in range(WORK):
        total += text[number % size]
    return total


print(sum(count(page(number)) for number in range(5)))
server.shutdown()

# %% healthy: many small reads from one open file
import io
import struct

RECORDS = 60000  # 40000..90000


def pack():
    return io.BytesIO(b"".join(struct.pack("<Id", number, number / 3) for number in range(RECORDS)))


def unpack(stream):
    total = 0.0
    for key, value in struct.iter_unpack("<Id", stream.read()):
        total += value * (key % 7)
    return total


def smooth(total):
    for step in range(1_500_000):
        total = total * 0.5 + step
    return total


print(smooth(unpack(pack())) > 0)

# %% healthy: a crawler that asks in parallel
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PAGES = 40  # 30..60


def serve(listener):
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            peer.recv(100)
            peer.sendall(b"page")


def fetch(port, number):
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"%d" % number)
        return link.recv(100)


def words(pages):
    total = 0
    for page in pages:
        size = len(page) + 1
        for step in range(60_000):
            total += step % size
    return total


listener = socket.create_server(("127.0.0.1", 0), backlog=64)
threading.Thread(target=serve, args=(listener,), daemon=True).start()
with ThreadPoolExecutor(4) as pool:
    port = listener.getsockname()[1]
    print(words(list(pool.map(lambda number: fetch(port, number), range(PAGES)))))
listener.close()

# %% planted: an asyncio client that awaits each answer
import asyncio

ITEMS = 600  # 400..900


async def serve(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.0008)
        writer.write(line)
        await writer.drain()
    writer.close()


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def get(self, key):
        self.writer.write(f"{key}\n".encode())
        await self.writer.drain()
        return (await self.reader.readline()).strip()


async def load(client):
    found = {}
    for number in range(ITEMS):
        found[number] = await client.get(number)  # planted
    return found


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    print(len(await load(client)))
    client.writer.close()


asyncio.run(main())

# %% planted: a wrapper around a wrapper around a cursor
import functools
import sqlite3

ROWS = 4000  # 3000..6000


def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


class Session:
    def __init__(self):
        self.db = sqlite3.connect("shop.db")
        self.db.execute("create table customer(id integer primary key, name text)")
        self.db.executemany("insert into customer values(?, ?)", ((n, f"c{n}") for n in range(ROWS)))
        self.db.commit()

    @logged
    def one(self, sql, *args):
        return self.db.execute(sql, args).fetchone()


def names(session, ids):
    return [session.one("select name from customer where id = ?", each)[0] for each in ids]  # planted


def main():
    session = Session()
    for _ in range(3):
        print(len(names(session, range(ROWS))))  # planted


main()

# %% planted: map with a lambda over a slow service
import time

ITEMS = 120  # 80..200


def remote(key):
    time.sleep(0.005)
    return key * 2


class Stub:
    def call(self, key):
        return remote(key)  # planted


def total(stub):
    return sum(map(lambda key: stub.call(key), range(ITEMS)))  # planted


print(total(Stub()))

# %% planted: a subprocess for each file
import subprocess

FILES = 120  # 90..160


def size_of(name):
    done = subprocess.run(["/bin/true", name])  # planted
    return done.returncode


def all_sizes(names):
    sizes = {}
    for name in names:
        sizes[name] = size_of(name)  # planted
    return sizes


print(len(all_sizes([f"f{n}" for n in range(FILES)])))

# %% planted: nested loops over orders and their lines
import os
import sqlite3

ORDERS = 60  # 50..90
LINES = 30  # 20..40


def prepare():
    db = sqlite3.connect("orders.db")
    db.execute("create table line(o integer, n integer, amount integer)")
    db.executemany("insert into line values(?, ?, 3)", ((o, n) for o in range(ORDERS) for n in range(LINES)))
    db.commit()
    return db


def totals(db):
    result = {}
    for order in range(ORDERS):
        for line in range(LINES):
            row = db.execute("select amount from line where o = ? and n = ?", (order, line)).fetchone()  # planted
            result[order] = result.get(order, 0) + row[0]
    return result


print(len(totals(prepare())))

# %% healthy: one query with many rows
import sqlite3

ROWS = 60000  # 40000..90000

db = sqlite3.connect(":memory:")
db.execute("create table t(a integer, b text)")
db.executemany("insert into t values(?, ?)", ((n, str(n)) for n in range(ROWS)))


def work(rows):
    total = 0
    for a, b in rows:
        for c in b:
            total += ord(c) * a
    return total


print(work(db.execute("select a, b from t")))

# %% healthy: asyncio requests, all at the same time
import asyncio

ITEMS = 200  # 150..300


async def get(key):
    await asyncio.sleep(0.05)
    return sum(n ^ key for n in range(3000))


async def main():
    print(sum(await asyncio.gather(*(get(n) for n in range(ITEMS)))))


asyncio.run(main())
