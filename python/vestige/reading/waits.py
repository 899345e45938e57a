"""What waits, and what for: the one table of calls that only wait, by the names that traces have for them.

A call belongs here if the thread has nothing to do until it returns: for a lock or another thread, for input or output,
for time to pass, or for a child process. os.read() does, since a pipe or disk is what takes its time. What computes and
may wait a little on the way (a file object's read(), any write) does not: to leave it out would hide work. Reports
use this inside programs that are ending, so it imports nothing.
"""

from __future__ import annotations

LOCK, IO, SLEEP, CHILD = "lock", "io", "sleep", "child"  # as files have it
KINDS = {LOCK: "locks", IO: "input and output", SLEEP: "sleep", CHILD: "child processes"}  # as people read it

FUNCTIONS = {
    SLEEP: "sleep clock_nanosleep pause sigwait sigwaitinfo sigtimedwait",
    IO: "select poll getaddrinfo gethostbyname gethostbyaddr input read readv pread preadv fsync fdatasync tcdrain",
    LOCK: "acquire_lock flock lockf _shutdown",  # the last: of _thread, for threads that still run
    CHILD: "wait waitpid waitid wait3 wait4",
}
METHODS = {
    LOCK: {
        "_thread.lock": "acquire acquire_lock __enter__",
        "_thread.RLock": "acquire __enter__",
        "_thread._ThreadHandle": "join",
        "_multiprocessing.SemLock": "acquire __enter__",
        "_queue.SimpleQueue": "get",
    },
    IO: {
        "select.poll": "poll",
        "select.epoll": "poll",
        "select.devpoll": "poll",
        "select.kqueue": "control",
        "_socket.socket": "accept _accept connect connect_ex recv recv_into recvfrom recvfrom_into recvmsg"
        " recvmsg_into",
        "_ssl._SSLSocket": "do_handshake read",
    },
}
_BY_NAME = {f"<built-in function {name}>": kind for kind, names in FUNCTIONS.items() for name in names.split()}
_BY_NAME |= {
    f"<built-in method {name} of {owner} object>": kind
    for kind, owners in METHODS.items()
    for owner, names in owners.items()
    for name in names.split()
}


def waits_for(name: str) -> str:
    """What a function in C waits for, by its name in a trace; "" if it does not."""
    return _BY_NAME.get(name, "")
