"""The web server that proofs/attach.py attaches to: threads, requests that compute, and answers about itself."""

import hashlib
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def leaf(number):
    return hashlib.sha256(b"%d" % number).hexdigest()


def branch(number):
    return "".join([leaf(number + i)[:2] for i in range(50)])


def hooks():
    core = sys.modules.get("vestige._core")
    return 0 if core is None else core.hooks_in_place()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        what, _, argument = self.path.lstrip("/").partition("/")
        body = str(hooks()) if what == "hooks" else branch(int(argument))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(os.getpid(), server.server_address[1], flush=True)
    server.serve_forever(poll_interval=0.05)
