"""A server of the standard library, for programs that restart others: plain_server.py PORT."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

WORD = "first"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(WORD.encode())

    def log_message(self, *args):
        pass


def main(port=None):
    HTTPServer(("127.0.0.1", int(port or sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
