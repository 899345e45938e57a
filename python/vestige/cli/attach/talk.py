"""The command's end of a connection with a process. recording/control.py describes the messages."""

from __future__ import annotations

import json

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE_MAX = 16 << 20


class Talk:
    """Sends and receives messages; `open` is false once the other end is gone."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.open = True
        self._received = b""

    def fileno(self) -> int:
        return int(self.connection.fileno())

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message. If the other end is gone, receive() finds out, and may still get the reason."""
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def receive(self) -> list[dict[str, Any]]:
        """Returns the complete messages that have arrived. Call when there is something to read."""
        try:
            data = self.connection.recv(65536)
        except OSError:
            data = b""
        self._received += data
        if not data or len(self._received) > LINE_MAX:
            self.open = False
        *lines, self._received = self._received.split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            raise Failure("unexpected reply from the process") from None
        return [message for message in messages if isinstance(message, dict)]

    def close(self) -> None:
        self.open = False
        self.connection.close()
