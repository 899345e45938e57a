"""Code that `vestige attach` runs inside a running process: it connects to the command, imports vestige and lets
vestige answer.

sys.remote_exec runs this file in the main thread, between two instructions of the program: maybe inside an import, or
just below the recursion limit. So all it does there is start a thread, which ends as soon as vestige listens to the
connection. gdb runs this file in a thread of its own, and says so by a variable `alone`.

Any Python may run this file, even one that vestige was not built for: then the command gets a line about that.
Failures are silent for the program. If no command waits, as in a forked child or after it gave up, nothing happens.
"""

import sys

SIZE_DIGITS = 8  # digits of the size that the command sends first


def _run():
    try:
        _connect()
    except BaseException as error:
        _leave_reason("vestige could not be started there (%s: %s)" % (type(error).__name__, error))  # noqa: UP031
    finally:
        globals().clear()  # otherwise these objects wait for a garbage collection, once for every attach


def _place(end):
    """Returns the path of a file of this process, which the command knows too."""
    posix = sys.modules["posix"]
    return "/tmp/vestige-%d/attach-%d.%s" % (posix.geteuid(), posix.getpid(), end)  # noqa: S108, UP031


def _leave_reason(text):
    """Leaves the reason where the command looks while it waits. A symbolic link needs no descriptor, and there may be
    none left.
    """
    try:
        posix = sys.modules["posix"]
        posix.stat(_place("sock"))  # raises if no command is waiting
        posix.symlink(text, _place("why"))
    except BaseException:  # nobody is waiting for the reason
        pass


def _find_starter():
    """Returns _thread.start_new_thread. If somebody has replaced it, as gevent does, takes it from a new copy of
    _thread. vestige.base.unpatched does the same, but may not be loaded here.
    """
    thread = sys.modules["_thread"]
    spec = thread.__spec__
    thread = sys.modules["_frozen_importlib"].module_from_spec(spec)
    spec.loader.exec_module(thread)  # type: ignore[union-attr]
    return thread.start_new_thread


def _connect():
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(_place("sock"))
    except OSError:  # the command is gone
        connection.close()
        return
    size = connection.recv(SIZE_DIGITS, _socket.MSG_WAITALL)
    if not size:  # another request was served first
        connection.close()
        return
    said = connection.recv(int(size), _socket.MSG_WAITALL).decode("utf-8", "surrogateescape")
    folder, abi, version = said.split("\0")
    trouble = ""
    try:
        trouble = _find_trouble(abi, version)
        if not trouble:
            _import(folder).serve(connection)
    except BaseException as error:
        trouble = "vestige could not be loaded there (%s: %s)" % (type(error).__name__, error)  # noqa: UP031
    if trouble:
        text = trouble.replace("\\", "/").replace('"', "'")
        text = "".join([character if character.isprintable() else " " for character in text])
        connection.send(('{"error": "%s"}\n' % text).encode("utf-8", "replace"))  # noqa: UP031
        connection.close()


def _find_trouble(abi, version):
    """Returns why the command's vestige cannot be loaded here; "" if it can."""
    implementation = getattr(sys, "implementation", None)
    here = "%s%s" % (getattr(implementation, "cache_tag", ""), getattr(sys, "abiflags", ""))  # noqa: UP031
    if here != abi:
        return "its Python is %s, and this vestige was built for %s" % (here, abi)  # noqa: UP031
    there = sys.modules.get("vestige")
    if there is not None and getattr(there, "__version__", None) != version:
        return "it has loaded vestige %s, and this is %s" % (getattr(there, "__version__", "?"), version)  # noqa: UP031
    return ""


def _import(folder):
    """Returns vestige.recording.control: from the program's own vestige if that is loaded, else from the command's."""

    def find_spec(name, path=None, target=None):
        if name != "vestige":
            return None
        finder = sys.modules["_frozen_importlib_external"].PathFinder  # importlib itself may not be loaded
        return finder.find_spec(name, [folder])

    if "vestige.recording.control" not in sys.modules:
        # A plain object, because a class would be a reference cycle.
        ours = type(sys.implementation)(find_spec=find_spec)  # type: ignore[call-arg]
        sys.meta_path.insert(0, ours)
        try:
            __import__("vestige.recording.control")
        finally:
            sys.meta_path.remove(ours)
    return sys.modules["vestige.recording.control"]


# Calls no Python function, because there may be no room for a frame.
try:
    if "alone" in globals():
        _run()
    elif getattr(sys, "is_finalizing", bool)():
        _leave_reason("the interpreter is shutting down: nothing is recorded any more")
    elif sys.modules["_thread"].start_new_thread.__module__ == "_thread":
        sys.modules["_thread"].start_new_thread(_run, ())
    else:
        _find_starter()(_run, ())
except BaseException as error:  # for example, no thread can be started while the functions of atexit run
    _leave_reason("no thread can be started there (%s)" % error)  # noqa: UP031
