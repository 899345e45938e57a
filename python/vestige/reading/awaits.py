"""Names the thing for which a task or a greenlet waits, from the function that waits and the kind of the awaited
object. The innermost waiting function says most: Queue.get waits for a queue, whatever future it made for that. If that
function is not a known one, the kind says whether another task is awaited, or a future that some code will complete.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vestige._core import Function

SLEEP, QUEUE, LOCK, SOCKET, CHILD, TASK, FUTURE, TURN, SWITCHED = (
    "sleep", "queue", "lock", "socket", "child", "task", "future", "turn", "switch"
)  # fmt: skip

NOTHING, A_FUTURE, A_TASK, GATHER, OTHER, SWITCH = range(6)  # numbers in traces: vst_task_awaits in <vestige/wire.h>
_OBJECTS = {NOTHING: TURN, A_FUTURE: FUTURE, A_TASK: TASK, GATHER: TASK, OTHER: FUTURE, SWITCH: SWITCHED}

_FILES = {
    "asyncio/queues.py": QUEUE,
    "asyncio/locks.py": LOCK,
    "asyncio/streams.py": SOCKET,
    "asyncio/selector_events.py": SOCKET,
    "asyncio/proactor_events.py": SOCKET,
    "asyncio/sslproto.py": SOCKET,
    "asyncio/subprocess.py": CHILD,
    "asyncio/base_subprocess.py": CHILD,
    "asyncio/taskgroups.py": TASK,
    "streams/memory.py": QUEUE,  # anyio's
    "gevent/_socket3.py": SOCKET,
    "gevent/_socketcommon.py": SOCKET,
    "gevent/_ssl3.py": SOCKET,
    "gevent/ssl.py": SOCKET,
    "gevent/subprocess.py": CHILD,
    "gevent/thread.py": LOCK,
    "gevent/lock.py": LOCK,
}
_FUNCTIONS = {
    ("asyncio/tasks.py", "sleep"): SLEEP,
    ("asyncio/tasks.py", "__sleep0"): SLEEP,
    ("gevent/hub.py", "sleep"): SLEEP,
    ("asyncio/tasks.py", "_wait"): TASK,
    ("asyncio/tasks.py", "wait_for"): TASK,
    ("asyncio/base_events.py", "sock_sendfile"): SOCKET,
    ("asyncio/base_events.py", "BaseEventLoop.getaddrinfo"): SOCKET,
    ("asyncio/base_events.py", "BaseEventLoop.sock_sendfile"): SOCKET,
}


# Functions of anyio that run the program's function, after which anyio names the task.
WRAPPERS = {"TaskGroup._run_wrapped_task", "TaskHandle._run_coro", "AsyncIOBackend.run.<locals>.wrapper"}


def names_wait(function: Function) -> bool:
    """Returns whether the function's name describes the wait best."""
    file = "/".join(function.file.split("/")[-2:])
    return (file, function.name) in _FUNCTIONS or file in _FILES


def awaits(kind: int, function: Function | None) -> str:
    """Returns `queue`, `sleep` …; `function` is the innermost that waits."""
    if function is not None:
        file, name = "/".join(function.file.split("/")[-2:]), function.name
        found = _FUNCTIONS.get((file, name)) or _FILES.get(file)
        if found:
            return found
    return _OBJECTS.get(kind, FUTURE)


def describe_awaits(functions: Sequence[Function | None]) -> dict[str, Any]:
    """Returns the results of awaits() for a page: by function if the name decides, else by the kind of object."""
    named = {str(number): awaits(0, each) for number, each in enumerate(functions) if each and names_wait(each)}
    return {"functions": named, "objects": [_OBJECTS[kind] for kind in sorted(_OBJECTS)]}
