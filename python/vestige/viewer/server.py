"""HTTP on 127.0.0.1: connections, limits, and who may ask. `api.py` answers the requests. Each connection has a thread,
at most CONNECTIONS of them. Each phase of a request has a deadline, and a client that misses it is cut off, so a client
that stops sending or reading does no harm. Nothing that a client does ends the server. If there are too many
connections, those that have not shown the token are ended first.

Who may ask: a client that knows the token (it is part of the address, and compared in constant time), that calls
us by our own name (a foreign name that points here is another site's), and is not a page of another origin. The
page's own files hold no data and need no token. Only a POST to the API has a body: nothing of it is read before these
checks, and the bodies of all connections together have at most BODIES_MAX bytes.
"""

from __future__ import annotations

import hmac
import http.client
import json
import secrets
import select
import socket
import socketserver
import sys
import time
from collections import deque
from http.server import BaseHTTPRequestHandler
from threading import Condition, Lock
from urllib.parse import parse_qsl

from .answers import Answer, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedIOBase
    from typing import Any

    from .api import Api

HOST = "127.0.0.1"
CONNECTIONS = 64
HEAD_MAX = 64 << 10  # bytes of a request's line and headers
BODY_MAX = 8 << 20
BODIES_MAX = 8 << 20  # limit for the bodies of all requests in progress together
LINGER_MAX = 16 << 20
FIELDS_MAX = 64  # fields of a query
IDLE, RECEIVE, SEND = 60.0, 10.0, 20.0  # seconds: between requests; for a request to arrive; for a piece to be sent
# seconds: for threads to end; for a connection to end; for a client to read the reason
STOP, ROOM, LINGER = 2.0, 0.5, 1.0
YOUNG = 0.1  # seconds after connecting in which a client can show the token
PIECE = 256 << 10
TOO_MANY = "too many connections"
TOKEN_HEADER = "X-Vestige-Token"  # noqa: S105 (a name)

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin-allow-popups"),
)


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


class Request:
    """A request that passed the checks."""

    def __init__(
        self, method: str, path: str, fields: dict[str, str], body: Any, check: Callable[[float], None]
    ) -> None:
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
        self.check = check
        """Call now and then during a computation; raises once the client is gone."""


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens from the moment when it is made; serve_forever() answers."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 4 * CONNECTIONS

    def __init__(self, api: Api, pages: dict[str, Answer], port: int = 0) -> None:
        self.api = api
        self.pages = pages
        self.token = secrets.token_urlsafe(24)
        self._lock = Lock()
        self._left = Condition(self._lock)  # notified when a connection has ended
        self._handlers: set[Handler] = set()
        self._count = 0  # guarded by _lock: connections, including those without a handler
        self._bodies = 0  # guarded by _lock: bytes of bodies
        self.stopping = False
        self.faults: deque[BaseException | None] = deque(maxlen=10)
        super().__init__((HOST, port), Handler)
        self.port: int = self.server_address[1]
        self.base = f"http://{HOST}:{self.port}"
        self.names = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        self.origins = {f"http://{name}" for name in self.names}

    @property
    def address(self) -> str:
        """The address for the user to open."""
        return f"{self.base}/?token={self.token}"

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Runs in the thread that accepts connections."""
        if self._make_room():
            super().process_request(request, client_address)
        else:
            refuse(request, 503, TOO_MANY)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._left:
                self._count -= 1
                self._left.notify()

    def service_actions(self) -> None:
        """Called about twice a second by serve_forever()."""
        now = time.monotonic()
        with self._lock:
            late = [handler for handler in self._handlers if handler.deadline < now]
        for handler in late:
            handler.cut_off()

    def _make_room(self) -> bool:
        """Returns whether there is room for a connection. If needed, ends one connection: the oldest that has not shown
        the token within YOUNG seconds, or else the trusted connection that has waited longest for its next request.
        """
        until = time.monotonic() + ROOM
        with self._left:
            while self._count >= CONNECTIONS:
                found = [handler for handler in self._handlers if handler.idle or not handler.trusted]
                last = min(found, key=lambda handler: (handler.trusted, handler.since), default=None)
                if last is not None and (last.trusted or time.monotonic() > last.since + YOUNG):
                    last.cut_off(503, TOO_MANY)
                self._left.wait(YOUNG / 10)
                if time.monotonic() > until:
                    return False
            self._count += 1
            return True

    def end(self) -> None:
        """Call after serve_forever(): answers no more requests. Threads that compute notice the end, and have a moment
        to clean up.
        """
        self.stopping = True
        self.server_close()
        until = time.monotonic() + STOP
        while time.monotonic() < until:
            with self._lock:
                handlers = list(self._handlers)
            if not handlers:
                break
            for handler in handlers:
                handler.cut_off()
            time.sleep(0.01)

    def take_body(self, length: int) -> None:
        """Call before reading a body, and give_body_back() after its request is answered."""
        with self._lock:
            if self._bodies + length > BODIES_MAX:
                raise Problem(
                    503, "too many bytes of requests at the moment: try again", headers=[("Retry-After", "1")]
                )
            self._bodies += length

    def give_body_back(self, length: int) -> None:
        with self._lock:
            self._bodies -= length

    def enter(self, handler: Handler) -> None:
        with self._lock:
            self._handlers.add(handler)

    def leave(self, handler: Handler) -> None:
        with self._lock:
            self._handlers.discard(handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores broken connections; reports every other error, which is a fault of ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, ClientGone)):
            self.faults.append(error)
            print(f"vestige: a connection ended by {type(error).__name__}: {error}", file=sys.stderr, flush=True)


class Handler(BaseHTTPRequestHandler):
    """Handles a connection, in a thread of its own."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # for a request without a version; HTTP/0.9 would have answers without a head
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body are sent together
    timeout = IDLE + RECEIVE  # for a single call; deadlines are shorter
    server: Server

    def setup(self) -> None:
        self.trusted = False  # true once a request had the token
        self.since = time.monotonic()  # when it connected; once trusted, since when it waits for its next request
        self._expect()
        self._refused = False
        super().setup()
        self.connection.settimeout(self.timeout)
        self._plain = self.rfile
        self.server.enter(self)

    def finish(self) -> None:
        self.rfile = self._plain
        try:
            super().finish()
            if self._refused:
                self._linger()
        except OSError:
            pass
        finally:
            self.server.leave(self)

    def _linger(self) -> None:
        """Reads the rest of the client's data: closing earlier would reset the connection and hide the answer."""
        self.deadline = time.monotonic() + LINGER
        self.connection.shutdown(socket.SHUT_WR)
        left = LINGER_MAX
        while left > 0 and (piece := self.connection.recv(PIECE)):
            left -= len(piece)

    def handle_one_request(self) -> None:
        self.rfile = self._plain
        self._expect()
        self._unread = False
        self.command, self.requestline, self.request_version = "", "", self.protocol_version
        try:
            if not self.rfile.peek(1):  # type: ignore[attr-defined]
                self.close_connection = True
                return
            self.idle = False
            self.deadline = time.monotonic() + RECEIVE
            self.rfile = Head(self._plain)  # type: ignore[assignment]
            super().handle_one_request()
        except http.client.LineTooLong:
            self.send_error(431)
        except (OSError, ClientGone):
            self.close_connection = True

    def _expect(self) -> None:
        """Begins to wait for a request."""
        now = time.monotonic()
        if self.trusted:
            self.since = now
        self.deadline = now + IDLE
        self.idle = self.receiving = True

    def cut_off(self, status: int = 408, why: str = "the request did not arrive in time") -> None:
        """Called by another thread: ends the wait of this one."""
        try:
            if self.receiving and not self.idle:
                refuse(self.connection, status, why)
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # ---- methods

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_HEAD = do_OPTIONS = do_GET

    def _answer(self) -> None:
        self.rfile = self._plain
        try:
            answer = self._find_answer()
        except Problem as problem:
            answer = problem.answer()
        except ClientGone:
            self.close_connection = True
            return
        except Exception as error:  # a failed request must not harm the next one
            answer = Problem(500, f"{type(error).__name__}: {error}").answer()
        self._send(answer)

    def _find_answer(self) -> Answer:
        self._unread = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        path, _, query = self.path.partition("?")
        self._check_host()
        if path.startswith("/handover/"):
            answer = self.server.api.hand_over(self.command, path, self.headers.get("Origin"))
            self.trusted = True
            self._expect_no_body()
            return answer(self._check_client)
        self._check_origin(path)
        if self.command not in ("GET", "HEAD", "POST"):
            raise Problem(405, f"{self.command} is not supported at this address")
        fields = self._fields(query)
        token = fields.pop("token", "")
        is_known = self.server.knows(self.headers.get(TOKEN_HEADER, token))
        self.trusted = self.trusted or is_known
        if not path.startswith("/api/"):
            return self._page(path)
        if self.command == "HEAD":
            raise Problem(405, "HEAD is not supported at this address")
        if not is_known:
            raise Problem(403, "the token is missing or wrong: open the address that vestige view printed")
        if self.command == "POST":
            return self._answer_post(path, fields)
        self._expect_no_body()
        return self.server.api.answer(Request(self.command, path, fields, None, self._check_client))

    def _answer_post(self, path: str, fields: dict[str, str]) -> Answer:
        length = self._body_length()
        self.server.take_body(length)
        try:
            return self.server.api.answer(
                Request(self.command, path, fields, self._read_json(length), self._check_client)
            )
        finally:
            self.server.give_body_back(length)

    def _page(self, path: str) -> Answer:
        page = self.server.pages.get(path)
        if page is None:
            raise Problem(404, "there is nothing at this address")
        if self.command == "POST":
            raise Problem(405, "POST is not supported at this address")
        return page

    # ---- checks

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.server.names:
            port = self.server.port
            raise Problem(
                403,
                f"ask for http://{HOST}:{port}, by that name; through ssh, forward the same port: "
                f"ssh -L {port}:{HOST}:{port}",
            )

    def _check_origin(self, path: str) -> None:
        """Refuses pages of other origins. A link on another page may lead to /, which holds no data."""
        origins = self.headers.get_all("Origin", [])
        foreign = any(origin not in self.server.origins for origin in origins)
        site = self.headers.get("Sec-Fetch-Site", "none")
        is_link = path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate" and not origins
        if foreign or (site not in ("none", "same-origin") and not is_link):
            raise Problem(403, "requests from pages of other sites are refused")

    def _check_client(self, share: float = 0) -> None:
        if self.server.stopping:
            raise ClientGone
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        if poll.poll(0) and self.connection.recv(1, socket.MSG_PEEK) == b"":
            raise ClientGone

    # ---- receiving

    def _body_length(self) -> int:
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1 or not all(map(is_number, lengths)):
            raise Problem(400, "a body must have one Content-Length")
        length = int(lengths[0]) if lengths else 0
        if length > BODY_MAX:
            raise Problem(413, f"a body has at most {BODY_MAX:,} bytes")
        return length

    def _expect_no_body(self) -> None:
        if self._body_length() > 0:
            raise Problem(413, "this address accepts no body")
        self._received()

    def _read_json(self, length: int) -> Any:
        data = self.rfile.read(length)
        if len(data) < length:
            raise ClientGone
        self._received()
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise Problem(400, "the body is not JSON") from None

    def _received(self) -> None:
        """Call when the request has arrived completely; the answer may take longer."""
        self._unread = self.receiving = False
        self.deadline = float("inf")

    def _fields(self, query: str) -> dict[str, str]:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="replace", max_num_fields=FIELDS_MAX)
        except ValueError:
            raise Problem(400, f"a query has at most {FIELDS_MAX} fields") from None
        if len(dict(pairs)) < len(pairs):
            raise Problem(400, "a field is given twice")
        return dict(pairs)

    # ---- sending

    def _send(self, answer: Answer) -> None:
        try:
            self._send_head(answer)
            if self.command != "HEAD":
                self._send_body(answer)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            answer.close()

    def _send_head(self, answer: Answer) -> None:
        self.receiving = False
        self.deadline = time.monotonic() + SEND
        if self._unread or (answer.status >= 400 and answer.status not in (404, 503)):
            self.close_connection = self._refused = True  # the next bytes may not be a request
        self.send_response(answer.status)
        policy = PAGE_POLICY if answer.is_page else DATA_POLICY
        headers = [*HEADERS, ("Content-Security-Policy", policy), *answer.headers]
        if not any(name == "Cross-Origin-Resource-Policy" for name, _ in headers):
            headers.append(("Cross-Origin-Resource-Policy", "same-origin"))
        if answer.status != 204:
            headers += [("Content-Type", answer.type), ("Content-Length", str(answer.length))]
        if self.close_connection:
            headers.append(("Connection", "close"))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _send_body(self, answer: Answer) -> None:
        for piece in answer.pieces(PIECE):
            self.deadline = time.monotonic() + SEND
            self.wfile.write(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Called by the base class for requests that cannot be parsed."""
        self.close_connection = True
        text = message or http.client.responses.get(code, "the request cannot be read")
        self._send(Problem(code, text).answer())

    def version_string(self) -> str:
        return "vestige"

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because the terminal belongs to the user."""


class Head:
    """Reads the lines of a request's head, at most HEAD_MAX bytes."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._left = HEAD_MAX

    def readline(self, limit: int = -1) -> bytes:
        line = self._file.readline(self._left + 1 if limit < 0 else min(limit, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise http.client.LineTooLong("header")
        return line


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def refuse(connection: socket.socket, status: int, message: str) -> None:
    """Sends a short answer to a client that gets no other answer; gives up if sending would block."""
    body = json.dumps({"error": message}).encode()
    head = (
        f"HTTP/1.1 {status} {http.client.responses[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        connection.send(head.encode() + body, socket.MSG_DONTWAIT)
    except OSError:
        pass
