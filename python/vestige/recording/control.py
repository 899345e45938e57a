"""A process that can be asked to record while it runs: by `vestige attach`, through a Unix socket.

There are two ways in. listen() opens a socket that the command connects to. Or the command puts startup/attached.py
into the process, which connects to the command's own socket and hands the connection to serve(). From there on both
are the same: a message is a line of JSON, and each is answered by one.

    {"do": "record", …}  starts a recording, which belongs to that connection: it ends with it
    {"do": "stop"}       ends the recording, whoever started it

A thread of the extension sleeps until somebody writes and then calls _attend(). All below runs in that thread, except
listen() and serve(); what those change is guarded by _lock. Nobody but this user, and root, may ask.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

from vestige import _core
from vestige.base.unpatched import original

from . import options as recording_options
from .children import _Scan, encode
from .endings import TOO_LATE
from .option_table import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige.profiler import profile

LISTEN = "VESTIGE_LISTEN"
LINE_MAX = 1 << 20  # bytes of a message
BUSY = "this process is being recorded already"
EPOLLIN = 1  # select.EPOLLIN, which gevent may have removed
NEVER = -1.0
ANSWERS_MAX = 100  # how many requests are answered when the process ends
PAUSE_S = 0.001  # pause until a thread that is about to end has ended
REST_S = 0.1  # pause after a connection that could not be accepted

_allocate_lock = original("_thread", "allocate_lock")
_lock = _allocate_lock()
_poll: Any = None  # an epoll object with all sockets below
_door: Any = None  # the socket that listens
_path = ""  # path of the door
_talks: dict[int, _Talk] = {}  # connections by descriptor
_held: _Held | None = None  # the recording in progress
_paused: profile | None = None  # the recording of `vestige run --paused`
_is_registered = False
_is_ending = False  # functions of atexit are running; nothing is recorded any more


class _Talk:
    """A connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.received = b""

    def is_gone(self) -> bool:
        from _socket import MSG_PEEK

        try:
            return not self.connection.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def send(self, message: dict[str, Any]) -> None:
        """Does not wait for a reader that does not read."""
        try:
            self.connection.send(encode(message).encode() + b"\n")
        except OSError:
            pass


class _Held:
    """A recording, and the connection that asked for it."""

    def __init__(self, prof: profile, path: str, owner: _Talk, until: float, *, is_paused: bool) -> None:
        self.prof = prof
        self.path = path  # path of the trace
        self.owner = owner
        self.until = until  # time of the monotonic clock; NEVER if there is no end
        self.is_paused = is_paused  # the profile of `vestige run --paused`, which can be started again


# ---- how a command reaches the process ---------------------------------------


def listen(path: str | os.PathLike[str] | None = None) -> str:
    """Lets `vestige attach` record this process from now on, without gdb or sys.remote_exec. Returns the path of the
    socket.

    path    where to put the socket; `{pid}` in it is the number of this process. Its folder must be one that only this
            user can enter; a missing one is made so. Default: a file of this process in /tmp/vestige-<uid>, where
            `vestige attach PID` looks for it; for another, use `vestige attach --socket PATH`

    Only processes of the same user, and of root, are answered. Until one asks, this costs nothing but a thread that
    sleeps. A forked child does not listen: it may call listen() itself.
    """
    global _door, _path
    from .sockets import listen_at, own_path

    wanted = own_path(os.getpid()) if path is None else os.path.abspath(os.fsdecode(path))
    wanted = wanted.replace("{pid}", str(os.getpid()))
    if _door is not None:
        if wanted == _path:
            return _path
        raise RuntimeError(f"this process listens already, at {_path}")
    door = listen_at(wanted)
    with _lock:
        _door, _path = door, wanted
        _add(door.fileno())
    return wanted


def listen_from_environment() -> None:
    """Listens where VESTIGE_LISTEN says, unless another process listens there already, such as the parent."""
    from .children import _program
    from .sockets import InUse

    if not _program()[0]:  # the process runs one of vestige's own commands
        return
    try:
        listen(os.environ[LISTEN])
    except InUse:
        pass
    except Exception as error:
        recording_options.tell_engine(f"vestige: {LISTEN}: {error}")


def serve(connection: Any) -> None:
    """Answers the messages of a connected socket until it is closed."""
    _begin_talk(connection)


def offer(prof: profile) -> None:
    """Sets the profile that an attaching command without a file name starts and stops."""
    global _paused
    _paused = prof


def _add(descriptor: int) -> None:
    global _poll, _is_registered
    if not _is_registered:
        _is_registered = True
        os.register_at_fork(after_in_child=_forget_all)
        atexit.register(_leave)
    if _poll is not None:
        _poll.register(descriptor, EPOLLIN)
        return
    _poll = original("select", "epoll")()
    _poll.register(descriptor, EPOLLIN)
    while not _core.watch_descriptor(_poll.fileno(), _attend):
        original("time", "sleep")(PAUSE_S)


def _begin_talk(connection: Any) -> None:
    connection.setblocking(False)
    with _lock:
        _talks[connection.fileno()] = _Talk(connection)
        _add(connection.fileno())


# ---- the thread ------------------------------------------------------------------


def _attend() -> float | None:
    """Called when a message or a connection comes, and when the time of a recording is over."""
    global _poll
    try:
        for descriptor, _ in _poll.poll(0):
            talk = _talks.get(descriptor)
            if talk is not None:
                _hear(talk)
            elif _door is not None:
                _open_door()
        if _held is not None and _held.until != NEVER and time.monotonic() >= _held.until:
            _stop()
    # errors that concern the other end are sent to it where they happen; nobody wants to know of this one
    except Exception:
        pass
    with _lock:
        if _door is None and not _talks:
            _poll.close()
            _poll = None
            return None
    return NEVER if _held is None or _held.until == NEVER else max(_held.until - time.monotonic(), 0.0)


def _open_door() -> None:
    from .sockets import adopt, is_trusted

    try:
        connection = adopt(_door._accept()[0])
    except OSError:  # no descriptor is free, or the other end has given up
        original("time", "sleep")(REST_S)
        return
    if is_trusted(connection):
        _begin_talk(connection)
    else:
        connection.close()


def _hear(talk: _Talk) -> None:
    try:
        data = talk.connection.recv(65536)
    except BlockingIOError:
        return
    except OSError:
        data = b""
    talk.received += data
    if not data or len(talk.received) > LINE_MAX:
        _hang_up(talk)
        return
    *lines, talk.received = talk.received.split(b"\n")
    for line in lines:
        _answer(talk, line)


def _hang_up(talk: _Talk) -> None:
    """Closes a connection; the recording that it asked for ends with it."""
    descriptor = talk.connection.fileno()
    _poll.unregister(descriptor)
    del _talks[descriptor]
    talk.connection.close()
    if _held is not None and _held.owner is talk:
        _stop()


def _answer(talk: _Talk, line: bytes) -> None:
    try:
        message, _ = _Scan.once(line.decode(), 0)
        if message["do"] == "record":
            talk.send(_record(talk, message))
        elif message["do"] == "stop":
            _stop_for(talk)
        else:
            raise ValueError(message["do"])
    except (KeyError, StopIteration, TypeError, ValueError) as error:
        talk.send({"error": f"not understood: {type(error).__name__}: {error}"})


# ---- recording -------------------------------------------------------------------


def _record(talk: _Talk, message: dict[str, Any]) -> dict[str, Any]:
    """Starts a recording. Once it has begun, calls nothing of the standard library, because that would be recorded."""
    global _held
    if _held is not None:
        return {"error": BUSY}
    if talk.is_gone():  # the other end has given up
        return {}
    if _is_ending:
        return {"error": TOO_LATE}
    notes: list[str] = []
    recording_options.notes = notes
    seconds = message.get("seconds")
    try:
        prof, is_paused, answer = _begin(message, notes)
    except Exception as error:
        return {"error": _why(error, message)}
    finally:
        recording_options.notes = None
    end = NEVER if seconds is None else time.monotonic() + seconds
    _held = _Held(prof, answer["recording"], talk, end, is_paused=is_paused)
    return answer


def _why(error: Exception, message: dict[str, Any]) -> str:
    if isinstance(error, FileExistsError):
        return f"{message.get('output')}: already exists; --force overwrites it"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or message.get('output') or message['folder']}: {error.strerror}"
    return str(error) or type(error).__name__


def _begin(message: dict[str, Any], notes: list[str]) -> tuple[profile, bool, dict[str, Any]]:
    """Starts a recording; returns its profile, whether that is the one of `vestige run --paused`, and the answer. A
    name that is taken shows when the file is created: to look first could wait for a slow disk.
    """
    number = 1
    while True:
        prof, is_paused = _choose(message, number)
        path = os.fsdecode(prof._output or "")
        answer = {"recording": path, "pid": os.getpid(), "name": name_of_program(), "notes": notes}
        try:
            _start(prof, path)
        except FileExistsError:
            if is_paused or message["output"] is not None:
                raise
            number += 1
        else:
            return prof, is_paused, answer


def _choose(message: dict[str, Any], number: int) -> tuple[profile, bool]:
    from .attached_profile import AttachedProfile

    if _core.recording():
        raise RuntimeError(BUSY)
    output = message["output"]
    if _paused is None or output is not None:
        options = {name: value for name, value in message["options"].items() if "code" not in BY_NAME[name].traits}
        return AttachedProfile(output=output or _own_name(message["folder"], number), **options), False
    if message["chosen"]:
        raise RuntimeError(
            "the process was started by vestige run --paused; options for another recording need -o FILE"
        )
    return _paused, True


def _start(prof: profile, path: str) -> None:
    was_there = prof._overwrite and os.path.lexists(path)
    try:
        prof.start()
    except FileExistsError:
        raise
    except BaseException:
        if not was_there and prof._session.storage() is None and os.path.lexists(path):
            os.unlink(path)
        raise


def _own_name(folder: str, number: int) -> str:
    again = f"-{number}" if number > 1 else ""
    return os.path.join(folder, f"{name_of_program()}.{os.getpid()}{again}.vst")


def name_of_program() -> str:
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if script in ("", "-", "-c", "-m"):
        return "python"
    return os.path.splitext(os.path.basename(script))[0] or "python"


def _stop_for(talk: _Talk) -> None:
    if _held is None:
        talk.send({"error": "nobody records this process by vestige attach"})
        return
    owner = _held.owner
    facts = _stop()
    if owner is not talk:
        talk.send(facts)


def _stop() -> dict[str, Any]:
    """Ends the recording, and sends the result to the connection that asked for it."""
    global _held
    held, _held = _held, None
    assert held is not None
    facts: dict[str, Any] = {"stopped": held.path, "paused": held.is_paused}
    try:
        if held.prof._running:
            held.prof.stop()
        if not held.is_paused:
            held.prof.finish()
        session = held.prof._session
        facts["snapshots"], facts["refused"] = session.snapshots()
        facts["lost"], facts["was_cut"] = session.lost, session.was_cut
    except Exception as error:
        facts["trouble"] = str(error)
    facts["hooks"] = _core.hooks_in_place()
    held.owner.send(facts)
    return facts


# ---- the process forks, or ends --------------------------------------------------


def _forget_all() -> None:
    """Call in a forked child, which must not answer messages to its parent."""
    global _held, _paused, _lock, _is_ending
    _lock = _allocate_lock()
    _held = _paused = None
    _is_ending = False
    _close_all()


def _close_all() -> None:
    global _poll, _door, _path
    for talk in _talks.values():
        talk.connection.close()
    _talks.clear()
    if _door is not None:
        _door.close()
    if _poll is not None:
        _poll.close()
    _poll = _door = None
    _path = ""


def _leave() -> None:
    """Called when the interpreter ends: refuses further requests. endings.py finishes a recording in progress; a
    recording that began later is finished here.
    """
    global _is_ending
    _core.unwatch_descriptor()
    _is_ending = True
    for _ in range(ANSWERS_MAX):
        if _poll is None or not _poll.poll(0):
            break
        _attend()
    if _held is not None and _held.prof._running:
        _stop()
    if _door is not None:
        try:
            os.unlink(_path)
        except OSError:
            pass
    _close_all()
