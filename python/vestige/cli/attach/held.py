"""A recording in another process, from the moment it is asked for until its report."""

from __future__ import annotations

import os
import select
import signal
import time

from vestige.base.failure import Failure
from vestige.base.quantities import duration, size
from vestige.base.terminal import Progress
from vestige.cli.run import Recording
from vestige.recording.sockets import adopt, is_trusted, peer

from .talk import Talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TextIO

    from vestige import Trace

STOP = {"do": "stop"}
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ANSWER_S = 60.0  # seconds for the process to import vestige and start recording
TELL_EVERY_S = 1.0


class Interrupts:
    """Ctrl-C and the signals that end programs. Before the recording they end the command, afterwards the recording."""

    def __init__(self) -> None:
        self.count = 0
        self.are_counted = False
        self.descriptor = self._end = -1

    def __enter__(self) -> Self:
        self.descriptor, self._end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)  # readable after a signal
        signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._take) for number in ENDING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._end)

    def _take(self, *_: object) -> None:
        if not self.are_counted:
            raise KeyboardInterrupt
        self.count += 1

    def drain(self) -> None:
        os.read(self.descriptor, 4096)


class Held:
    """The recording in another process. Talks to that process, and to commands that want to detach."""

    def __init__(self, talk: Talk, door: Any, who: str, interrupts: Interrupts, handle: int | None = None) -> None:
        """`handle` is readable once the process has ended. Commands that want to detach connect to `door`."""
        self._talk = talk
        self._door = door
        self.who = who
        self._handle = handle
        self._interrupts = interrupts
        self._others: list[Talk] = []  # commands that asked to detach
        self.answer: dict[str, Any] = {}  # the process's answer when the recording began
        self.facts: dict[str, Any] | None = None  # the process's answer when the recording stopped; None: it still runs

    def begin(self, request: dict[str, Any]) -> None:
        """Starts the recording. Raises Failure if the process does not record."""
        self._talk.send({"do": "record", **request})
        until = time.monotonic() + ANSWER_S
        waits = select.poll()
        waits.register(self._talk.fileno(), select.POLLIN)
        while self._talk.open:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise Failure(f"{self.who} has not begun to record within {ANSWER_S:g} s: the request was withdrawn")
            if not waits.poll(left_s * 1000):
                continue
            for message in self._talk.receive():
                if "error" in message:
                    raise Failure(f"{self.who}: {message['error']}")
                if "stopped" in message:  # a short recording may have ended already
                    self.facts = message
                else:
                    self.answer = message
            if self.answer:
                self._interrupts.are_counted = True
                return
        raise Failure(f"{self.who} has ended")

    def wait(self) -> None:
        """Waits until the recording has ended, for whatever reason."""
        progress = Progress(f"recording {self.who}", rich=False)
        begun = time.monotonic()
        asked = False
        try:
            while self.facts is None and self._talk.open:
                if self._interrupts.count and not asked:
                    asked = True
                    self._talk.send(STOP)
                if self._interrupts.count > 1:
                    raise Failure(f"{self.who} has not stopped yet; it stops as soon as it runs Python code", code=130)
                self._look(TELL_EVERY_S)
                progress.count(f"{duration((time.monotonic() - begun) * 1e9)}, {self._size()}")
        finally:
            progress.clear()
            self._interrupts.are_counted = False

    def _size(self) -> str:
        try:
            return size(os.stat(self.answer["recording"]).st_blocks * 512)
        except OSError:
            return "…"

    def _look(self, patience_s: float) -> None:
        waits = select.poll()
        waits.register(self._talk.fileno(), select.POLLIN)
        waits.register(self._interrupts.descriptor, select.POLLIN)
        if self._door is not None:
            waits.register(self._door.fileno(), select.POLLIN)
        if self._handle is not None:
            waits.register(self._handle, select.POLLIN)
        for other in self._others:
            waits.register(other.fileno(), select.POLLIN)
        for descriptor, _ in waits.poll(patience_s * 1000):
            if descriptor == self._talk.fileno():
                self._hear()
            elif descriptor == self._interrupts.descriptor:
                self._interrupts.drain()
            elif descriptor == self._handle:
                self._hear_last()
            elif self._door is not None and descriptor == self._door.fileno():
                self._let_in()
            else:
                self._hear_other(descriptor)

    def _hear(self) -> None:
        for message in self._talk.receive():
            if "stopped" in message:
                self.facts = message
        if self.facts is not None:
            for other in self._others:
                other.send(self.facts)

    def _hear_last(self) -> None:
        """Reads the last messages of a process that has ended. A child of the process may still hold the connection
        open.
        """
        waits = select.poll()
        waits.register(self._talk.fileno(), select.POLLIN)
        while self._talk.open and waits.poll(0):
            self._hear()
        self._talk.open = False

    def _let_in(self) -> None:
        connection = adopt(self._door._accept()[0])
        # the process has run an earlier request, which was withdrawn
        is_process = peer(connection)[0] == self.answer.get("pid")
        if is_trusted(connection) and not is_process:
            self._others.append(Talk(connection))
        else:
            connection.close()

    def _hear_other(self, descriptor: int) -> None:
        other = next(one for one in self._others if one.fileno() == descriptor)
        if any(message == STOP for message in other.receive()):
            self._talk.send(STOP)
        if not other.open:
            self._others.remove(other)
            other.close()


class AttachedRecording(Recording):
    """A recording for the report, which looks as after `vestige run`, but of a file that another process has
    written.
    """

    def _metadata(self, trace: Trace) -> dict[str, Any]:
        from vestige.reading.metadata import check_shapes, load_json

        return check_shapes({key: load_json(text) for key, text in trace.metadata().items()})

    def report(self, out: TextIO) -> None:
        from shlex import quote

        super().report(out)
        if self._memory:
            print(f"vestige memory-report {quote(self._shown)}   # what held memory", file=out)

    _memory = False


def over(held: Held, options: Any, shown: Callable[[str], str]) -> AttachedRecording:
    """Returns the recording in the form that the report needs."""
    facts = held.facts or {}
    path = str(held.answer["recording"])
    return AttachedRecording.over(
        {
            "_path": path,
            "_read": path,
            "_shown": shown(path),
            "_command": [],
            "_scope": {},
            "_exceptions": options.exceptions,
            "_max_snapshots": options.max_snapshots,
            "_snapshots": (facts.get("snapshots", []), facts.get("refused", 0)),
            "_memory": options.profile_memory,
        }
    )
