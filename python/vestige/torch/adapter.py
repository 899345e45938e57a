"""Operators of torch: makes our observer in torch record while vestige does.

The observer is a library in C++ (_torch/operators.cpp) that belongs to one version of torch: build.py makes it,
once. It is loaded only where torch is: at the start of a recording, or when the program imports torch while one is
under way. Without it everything else is recorded as usual, and one line says so. Nothing is built while a program is
recorded, nor while somebody who attached to a process waits for it.
"""

from __future__ import annotations

import os
import sys

from vestige import _core
from vestige.recording import options, standard_error

from . import Arrival

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Any

SHAPES, FLOPS, MEMORY, OVERLOADS, IDS, MODULES, STORAGES, TENSORS = (
    1 << bit for bit in range(8)
)  # equal to the constants in observer.h
FLAG = "_is_profiler_enabled"  # in torch.autograd.profiler
STARTS = (  # functions that torch's own profilers call when they start
    ("torch.autograd.profiler", "_run_on_profiler_start"),
    ("torch.autograd.profiler_legacy", "_enable_profiler_legacy"),
)
# Functions of the observer that the extension calls.
WATCHING = ("vst_torch_attend", "vst_torch_without", "vst_torch_is_watched")
HANDED_ON = ("vst_torch_thread", "vst_torch_hush", "vst_torch_note", "vst_torch_describe", *WATCHING)

_library: Any = None  # the handle of ctypes, once the library is loaded
_pid = 0  # the process that tried to load it
_flags: int | None = None  # flags of the recording in progress; None: nothing is recorded
_notes: list[Any] | None = None  # receives what modules and optimizers hold during that recording
_off = False  # the environment switches the adapter off
_table: Any = None  # the address of vst_api
_addresses: dict[str, int] = {}  # addresses of the functions in HANDED_ON
_thread = 0  # the address of the function that numbers threads like torch
_announced: ModuleType | None = None  # torch.autograd.profiler, while its flag says that a profiler runs
_starts: list[tuple[ModuleType, str, Any, Any]] = []  # module, name, original and replacement
_graph: tuple[int, int, bytes | None, bytes | None] = (0, 0, None, None)  # arguments for vst_torch_graph
_set_flag = False  # we set the flag, because torch had no profiler running
_step_hook: Any = None  # torch calls this after each step of an optimizer; None: not registered


def prepare() -> None:
    """Called before a recording: makes the calls that must not be in the recording, and loads the observer if torch is
    loaded.
    """
    global _off
    _off = os.environ.get("VESTIGE_TORCH", "") == "0"
    if _is_loaded():
        _load(builds=options.notes is None)


def start(
    *,
    calls: bool,
    record_shapes: bool = False,
    with_flops: bool = False,
    memory: bool = False,
    overload_names: bool = False,
    ids: bool = False,
    with_modules: bool = False,
    storages: bool = False,
    tensors: bool = False,
    notes: list[Any] | None = None,
) -> None:
    """Called when a recording has just begun. If torch is not imported yet, the observer starts after the import: the
    recorder sees the import if all calls are recorded, else a finder waits for it. `notes` receives what modules and
    optimizers hold.
    """
    global _flags, _notes
    _flags = SHAPES * record_shapes | FLOPS * with_flops | MEMORY * memory | OVERLOADS * overload_names | IDS * ids
    _flags |= MODULES * with_modules
    if record_shapes:
        _flags |= STORAGES * storages | TENSORS * tensors
    _notes = notes
    if _is_loaded():
        _begin()
    elif calls and not _off:
        _core.await_framework(_arrive)
    elif not _off:
        _arrival.wait()


def stop() -> None:
    """Called before the recording ends. Removes everything that was placed in torch."""
    global _flags
    _flags = None
    _core.await_framework(None)
    _arrival.leave()
    if _library is not None:
        _library.vst_torch_stop()
        if not _library.vst_torch_is_watched():
            _core.watch_fast_contexts(None, 0, 0, 0)
    _watch_tensors(None)
    _announce(None)


def after_fork() -> None:
    """Called in a forked child whose parent records. Takes no lock, because another thread of the parent may have held
    it.
    """
    global _flags
    if _flags is None:
        return
    _flags = None
    _core.await_framework(None)
    _arrival.leave()
    if _library is not None:
        _library.vst_torch_forget()
        _core.watch_fast_contexts(None, 0, 0, 0)
    _watch_tensors(None)
    _announce(None)


def set_graph(observer: int, ranges: bool = False, names: Sequence[str] = (), folder: str = "") -> None:
    """From now on, operators are also nodes of this observer's execution trace; 0: of no trace. The tensors of integers
    of the operators `names` are kept as files in the folder.
    """
    global _graph
    listed = f",{','.join(names)},".encode() if names and folder else None
    _graph = (observer, int(ranges), listed, os.fsencode(folder) if listed else None)
    _core.set_graph(observer, _thread)
    if _library is not None and _flags is not None:
        _library.vst_torch_graph(*_graph)


def allocated_before() -> int:
    """Returns how many bytes torch's allocator had given out before the first block of the last recording; -1 if
    unknown.
    """
    return -1 if _library is None else int(_library.vst_torch_allocated_before())


def _is_loaded() -> bool:
    """Returns whether torch is completely imported and the adapter is not switched off."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and not _off
        and hasattr(torch, "_C")
        and not getattr(getattr(torch, "__spec__", None), "_initializing", False)
    )


def _arrive() -> None:
    """Called when torch was imported during a recording."""
    _core.notice_fork()
    try:
        _begin()
    except Exception as error:  # never raise into the program
        tell(f"torch's operators are not recorded: {type(error).__name__}: {error}")


def _begin() -> None:
    if _flags is None:
        return
    annotation = ("torch.autograd.profiler", "record_function")
    codes = [
        _code("torch.nn.modules.module", "Module", "__call__"),
        _code(*annotation, "__enter__"),
        _code(*annotation, "__exit__"),
    ]
    if _notes is not None:
        codes.append(_code("torch.optim.optimizer", "Optimizer", "_optimizer_step_code"))
        codes += [_code("torch._ops", kind, "__call__") for kind in ("OpOverload", "OpOverloadPacket")]
    try:
        _core.set_framework_code(*codes)
    except RuntimeError as error:
        tell(f"calls of torch's modules are shown as calls of functions: {error}")
    _load(builds=False)
    _core.set_graph(_graph[0], _thread)
    _announce(sys.modules.get("torch.autograd.profiler"))
    if _library is not None:
        _watch_fast_contexts()
    if _library is not None and (_library.vst_torch_graph(*_graph) or _library.vst_torch_start(_table, _flags)):
        tell("torch's operators are not recorded: its observer could not be installed")
    elif _library is not None and (_flags & STORAGES or _notes is not None):
        _watch_tensors(sys.modules["torch"])


def _watch_fast_contexts() -> None:
    """Watches _RecordFunctionFast while threads may have the observer in place of a profiler."""
    kind = getattr(sys.modules.get("torch._C._profiler"), "_RecordFunctionFast", None)
    if isinstance(kind, type):
        _core.watch_fast_contexts(kind, *[_addresses[name] for name in WATCHING])


def _watch_tensors(torch: Any) -> None:
    """Notes which tensors modules and optimizers hold, so that memory can be classified. None ends this."""
    global _step_hook
    if torch is None:
        if _step_hook is not None:
            _step_hook.remove()
            _step_hook = None
        _core.set_framework_tensors(None, 0, 0)
        _core.note_tensors(None, 0, None)
        return
    with_storages = _flags is not None and _flags & STORAGES
    note = _addresses["vst_torch_note"] if with_storages else 0
    _core.set_framework_tensors(torch.Tensor, _addresses["vst_torch_hush"], note)
    _core.note_tensors(torch.Tensor, _addresses["vst_torch_describe"], _notes)
    if not with_storages:
        return
    register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if register is not None and _step_hook is None:
        _step_hook = register(_core.note_optimizer)


def _code(module: str, owner: str, name: str) -> CodeType | None:
    """Returns the code of a class's function; None if the module is not loaded or lacks the function."""
    return getattr(getattr(getattr(sys.modules.get(module), owner, None), name, None), "__code__", None)


def _announce(module: ModuleType | None) -> None:
    """Makes torch behave as if one of its profilers ran; None undoes that. torch then annotates compiled code. Its own
    profilers, when they start, first make our observer release the place where allocations are reported.
    """
    global _announced, _set_flag
    if module is not None and _announced is None:
        _announced = module
        _set_flag = getattr(module, FLAG, None) is False
        if _set_flag:
            setattr(module, FLAG, True)
        for home, name in STARTS:
            place = sys.modules.get(home)
            original = getattr(place, name, None)
            if place is not None and original is not None:
                ours = _after_making_way(original)
                _starts.append((place, name, original, ours))
                setattr(place, name, ours)
    elif module is None and _announced is not None:
        if _set_flag:
            setattr(_announced, FLAG, False)
        for place, name, original, ours in _starts:
            if getattr(place, name, None) is ours:
                setattr(place, name, original)
        _starts.clear()
        _announced = None


def _after_making_way(original: Any) -> Any:
    """Wraps a function that torch's profilers call when they start."""

    def start(*args: Any, **kwargs: Any) -> Any:
        if _library is not None:
            _library.vst_torch_make_way()
        return original(*args, **kwargs)

    return start


def _load(builds: bool) -> None:
    """Loads the observer's library. Tries to build it at most once per process, and then reports a failure."""
    global _library, _pid, _table, _thread
    if _library is not None or _pid == os.getpid():
        return
    if builds:
        _pid = os.getpid()
    try:
        import ctypes

        from .build import BuildError, find

        get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        _table = get(_core.api, b"vestige._core.api")
        try:
            _library = find(sys.modules["torch"], tell, builds)
            for name in HANDED_ON:
                _addresses[name] = ctypes.cast(getattr(_library, name), ctypes.c_void_p).value or 0
            _thread = _addresses["vst_torch_thread"]
        except BuildError as error:
            tell(f"torch's operators are not recorded: {error}")
    except Exception as error:  # never raise into the program
        tell(f"torch's operators are not recorded: {type(error).__name__}: {error}")


def tell(line: str) -> None:
    """Reports one line to the person who runs the program, or who attached to it."""
    if options.notes is None:
        standard_error.say(line)
    elif line not in options.notes:
        options.notes.append(line)


_arrival = Arrival("torch", lambda _: _arrive())
