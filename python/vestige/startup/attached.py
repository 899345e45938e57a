"""What `vestige attach` puts into a running process: it connects to the command, imports vestige and has it answer.

The main thread runs this between two instructions of the program, maybe inside an import, so all it does there is to
start a thread, which ends as soon as vestige listens to the connection. Any Python may run this, also one that vestige
was not built for: then the command is told so. Its failures are silent for the program. If the command is gone,
nothing happens.
"""

import sys


def begin(address, folder, abi, version):
    """address: of the command's socket; folder: where its vestige package lies."""
    facts = (address, folder, abi, version)
    if getattr(sys, "is_finalizing", bool)():
        _refuse(address, "the interpreter is shutting down: nothing is recorded any more")
        return
    try:
        _find_starter()(_run, facts)
    except Exception as error:  # such as: not while the functions of atexit run
        _refuse(address, "no thread can be started there (%s)" % error)  # noqa: UP031


def _find_starter():
    """_thread.start_new_thread, also where somebody has replaced it, as gevent does: then a new copy of _thread has it.
    vestige.base.unpatched does the same, which may not be loaded here."""
    import _thread

    if getattr(_thread.start_new_thread, "__module__", None) != "_thread":
        spec = _thread.__spec__
        _thread = sys.modules["_frozen_importlib"].module_from_spec(spec)
        spec.loader.exec_module(_thread)  # type: ignore[union-attr]
    return _thread.start_new_thread


def _refuse(address, trouble):
    try:
        import _socket

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(address)
        _tell(connection, trouble)
    except Exception:  # nobody to tell
        pass
    finally:
        globals().clear()  # as _run does it


def _run(*facts):
    try:
        _connect(*facts)
    except BaseException:  # nobody to tell
        pass
    finally:
        globals().clear()  # else they wait for a garbage collection, as many times as somebody attaches


def _connect(address, folder, abi, version):
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(address)
    trouble = ""
    try:
        trouble = _find_trouble(abi, version)
        if not trouble:
            _import(folder).serve(connection)
    except BaseException as error:
        trouble = "vestige could not be loaded there (%s: %s)" % (type(error).__name__, error)  # noqa: UP031
    if trouble:
        _tell(connection, trouble)


def _tell(connection, trouble):
    text = trouble.replace("\\", "/").replace('"', "'")
    text = "".join([character if character.isprintable() else " " for character in text])
    connection.send(('{"error": "%s"}\n' % text).encode("utf-8", "replace"))  # noqa: UP031
    connection.close()


def _find_trouble(abi, version):
    """Why the command's vestige cannot be loaded here; "" if it can."""
    implementation = getattr(sys, "implementation", None)
    here = "%s%s" % (getattr(implementation, "cache_tag", ""), getattr(sys, "abiflags", ""))  # noqa: UP031
    if here != abi:
        return "its Python is %s, and this vestige was built for %s" % (here, abi)  # noqa: UP031
    there = sys.modules.get("vestige")
    if there is not None and getattr(there, "__version__", None) != version:
        return "it has loaded vestige %s, and this is %s" % (getattr(there, "__version__", "?"), version)  # noqa: UP031
    return ""


def _import(folder):
    """vestige.recording.control, of the program's own vestige where it has loaded that, else of the command's."""

    def find_spec(name, path=None, target=None):
        if name != "vestige":
            return None
        finder = sys.modules["_frozen_importlib_external"].PathFinder  # importlib itself may not be loaded
        return finder.find_spec(name, [folder])

    if "vestige.recording.control" not in sys.modules:
        # A plain object: a class would be a cycle of garbage.
        ours = type(sys.implementation)(find_spec=find_spec)  # type: ignore[call-arg]
        sys.meta_path.insert(0, ours)
        try:
            __import__("vestige.recording.control")
        finally:
            sys.meta_path.remove(ours)
    return sys.modules["vestige.recording.control"]
