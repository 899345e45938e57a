"""The web server of proofs/production.py: pages of a catalogue, a thread a connection.

Its main thread ends when the standard input does. GET /page/N answers a page of N rows, GET /slow/N one that takes
N milliseconds longer than it should.
"""

# Not used directly. The heap of a real server has holes, which its imports have left. Without holes, a page of this
# server takes up to 2 % fewer instructions in the allocator, so one more import, with or without recording, would
# change the results.
import asyncio  # noqa: F401
import decimal  # noqa: F401
import email.message  # noqa: F401
import html.parser  # noqa: F401
import inspect  # noqa: F401
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def make_catalogue(count=400):
    return json.dumps(
        [
            {
                "name": f"  thing number {i} ",
                "price": 100 + i * 37 % 9000,
                "tags": ["a", "b", str(i % 7)],
                "left": i % 5,
            }
            for i in range(count)
        ]
    )


CATALOGUE = make_catalogue()


def price_text(cents, discount):
    return f"{cents * (100 - discount) // 100 / 100:,.2f}"


def discount_of(item):
    return 10 if "3" in item["tags"] else 0


def is_wanted(item):
    return item["left"] > 0


def row(item):
    name = item["name"].strip().title()
    tags = ", ".join(sorted(item["tags"]))
    return f"<tr><td>{name}</td><td>{price_text(item['price'], discount_of(item))}</td><td>{tags}</td></tr>"


def page(rows):
    items = [item for item in json.loads(CATALOGUE) if is_wanted(item)]
    items.sort(key=lambda item: (item["price"], item["name"]))
    return "<table>" + "".join([row(item) for item in (items * 20)[:rows]]) + "</table>"


def answer(what, argument):
    if what == "slow":
        time.sleep(int(argument) / 1000)
        argument = 1
    return page(int(argument))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        what, _, argument = self.path.lstrip("/").partition("/")
        body = answer(what, argument).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(os.getpid(), server.server_address[1], flush=True)
    sys.stdin.read()
    server.shutdown()
