"""The command's end of a conversation with a process: see recording/control.py for what is said."""

from __future__ import annotations

import json

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE_MAX = 16 << 20


class Talk:
    """Messages go out and come in; `open` is False once the other end is gone."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.open = True
        self._received = b""

    def fileno(self) -> int:
        return int(self.connection.fileno())

    def send(self, message: dict[str, Any]) -> None:
        """If the other end is gone, receive() will tell; it may have said why."""
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def receive(self) -> list[dict[str, Any]]:
        """Whole messages that have come; to be called when there is something to read."""
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
            raise Failure("the process sent what is not understood") from None
        return [message for message in messages if isinstance(message, dict)]

    def close(self) -> None:
        self.open = False
        self.connection.close()
