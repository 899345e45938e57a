"""torch.profiler.record_function once install() made it ours: what else of torch must know it.

- Its profilers, and modes that take part in every operator, see its own spans. The extension enters one of those where
  they listen (framework_spans.c), and asks torch's library whether they do.
- TorchScript compiles torch's class in the place of ours.
- torch.compile has a table of the context managers that it sees through. Ours are entered when dynamo is loaded, which
  we never load by ourselves.
"""

from __future__ import annotations

import sys

from vestige import _core

from . import Arrival

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

LIBRARY = "libtorch_cpu.so"
LISTENERS = ("_ZN2at12hasCallbacksEv", "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb")
LINKS = "_ZN5torch8profiler4impl19get_fwd_bwd_enabledEv"
QUALNAME = "_jit_override_qualname"  # what TorchScript calls a class
DYNAMO = "torch._dynamo"

CONTEXTS = ("profile", "record_function")  # that dynamo sees through

_theirs: Any = None  # torch's own class, while ours has its place
_links: Any = None  # torch's function that says it, if there is one; called while recording, so it is made before
_originals: Sequence[tuple[ModuleType, str, Any]] = ()  # modules, names in them that are ours now, what those had
_entered: list[tuple[dict[Any, Any], Any]] = []  # tables of dynamo's and our keys in them


def take_place(originals: Sequence[tuple[ModuleType, str, Any]]) -> None:
    """Called when record_function has taken the place of torch's."""
    global _theirs, _originals, _links
    import ctypes

    _originals = originals
    _theirs = next(original for _, name, original in originals if name == "record_function")
    *listeners, links = _addresses(*LISTENERS, LINKS)
    _core.set_framework_span(_theirs, *listeners)  # which say whether somebody sees torch's spans
    _links = ctypes.CFUNCTYPE(ctypes.c_bool)(links) if links else None
    setattr(_core.record_function, QUALNAME, _ScriptName())
    dynamo = sys.modules.get(DYNAMO)
    if dynamo is None:
        _arrival.wait()
    else:
        _enter_tables(dynamo)


def leave_place() -> None:
    """Undoes take_place()."""
    global _theirs, _originals
    if _theirs is None:
        return
    _theirs, _originals = None, ()
    _arrival.leave()
    _core.set_framework_span(None, 0, 0)
    delattr(_core.record_function, QUALNAME)
    for table, key in _entered:
        table.pop(key, None)
    _entered.clear()


def links_gradients() -> bool:
    """Whether torch would draw arrows from operators to those that compute their gradients, as programs may choose."""
    return _links is None or bool(_links())


def _addresses(*names: str) -> list[int]:
    """Where torch's library has functions; 0 for one that it does not have."""
    import ctypes
    import os

    try:
        library = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return [0] * len(names)
    found = [getattr(library, name, None) for name in names]
    return [ctypes.cast(each, ctypes.c_void_p).value or 0 if each is not None else 0 for each in found]


class _ScriptName:
    """The name by which TorchScript knows torch's class, which is compiled when that is first asked for."""

    def __get__(self, _: object, owner: object) -> str:
        if owner is not _core.record_function or _theirs is None:
            raise AttributeError(QUALNAME)
        from torch import _jit_internal
        from torch.jit import _script

        name: str = _script._qualified_name(_theirs)
        resolve = _jit_internal.createResolutionCallbackForClassMethods(_theirs)
        _script._compile_and_register_class(_theirs, resolve, name)
        return name


def _enter_tables(_: ModuleType) -> None:
    """Tells dynamo of ours. Where this torch has other tables, ours break graphs as any context manager does."""
    try:
        from torch._dynamo.variables import torch as classes

        table = classes.supported_ctx_manager_classes
        for module, name, original in _originals:
            if name in CONTEXTS:  # the table may have been made when ours were there already
                table.setdefault(original)
                _enter(table, getattr(module, name), None)
        _enter_spans_of_torch()
    except Exception as error:  # never into the program
        from .adapter import tell

        tell(f"torch.compile does not see through record_function: {type(error).__name__}: {error}")


def _enter_spans_of_torch() -> None:
    """dynamo knows a span that was made before by `isinstance(span, torch.profiler.record_function)`. That is ours now,
    so torch's own are entered where it looks up exact types."""
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.ctx_manager import RecordFunctionVariable

    def wrap(builder: Any, span: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        return RecordFunctionVariable(span)

    for with_numpy in (True, False):
        _enter(VariableBuilder._type_dispatch_impl(with_numpy), _theirs, wrap)


def _enter(table: dict[Any, Any], key: Any, value: Any) -> None:
    if key not in table:
        table[key] = value
        _entered.append((table, key))


_arrival = Arrival(DYNAMO, _enter_tables)
