"""Makes the rest of torch accept our record_function as torch.profiler.record_function, after install().

- torch's profilers, and modes that take part in every operator, see its own spans. If any of them
  listens, the extension also enters torch's own span (framework_spans.c); it asks torch's library whether they do.
- TorchScript compiles torch's class instead of ours.
- torch.compile has a table of the context managers that it sees through. Our classes are added to the table once the
  program has loaded dynamo.
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
QUALNAME = "_jit_override_qualname"  # the name of a class for TorchScript
DYNAMO = "torch._dynamo"

CONTEXTS = ("profile", "record_function")  # context managers that dynamo sees through

_theirs: Any = None  # torch's own class, while ours has its place
# torch's function that returns this setting, if it exists; looked up early, because it is called while recording
_links: Any = None
_originals: Sequence[tuple[ModuleType, str, Any]] = ()  # modules, names in them that are ours now, and originals
_entered: list[tuple[dict[Any, Any], Any]] = []  # tables of dynamo, and our keys in them


def take_place(originals: Sequence[tuple[ModuleType, str, Any]]) -> None:
    """Called when our record_function has taken the place of torch's."""
    global _theirs, _originals, _links
    import ctypes

    _originals = originals
    _theirs = next(original for _, name, original in originals if name == "record_function")
    *listeners, links = _addresses(*LISTENERS, LINKS)
    _core.set_framework_span(_theirs, *listeners)  # `listeners` return whether somebody sees torch's spans
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
    """Returns whether torch would draw arrows from operators to the operators that compute their gradients, a setting
    of the program.
    """
    return _links is None or bool(_links())


def _addresses(*names: str) -> list[int]:
    """Returns the addresses of functions in torch's library; 0 for missing functions."""
    import ctypes
    import os

    try:
        library = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return [0] * len(names)
    found = [getattr(library, name, None) for name in names]
    return [ctypes.cast(each, ctypes.c_void_p).value or 0 if each is not None else 0 for each in found]


class _ScriptName:
    """The name by which TorchScript knows torch's class. The class is compiled when the name is first read."""

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
    """Registers our classes with dynamo. If this torch has other tables, our spans break graphs as any context manager
    does.
    """
    try:
        from torch._dynamo.variables import torch as classes

        table = classes.supported_ctx_manager_classes
        for module, name, original in _originals:
            if name in CONTEXTS:  # the table may have been made when our classes were in place already
                table.setdefault(original)
                _enter(table, getattr(module, name), None)
        _enter_spans_of_torch()
    except Exception as error:  # never raise into the program
        from .adapter import tell

        tell(f"torch.compile does not see through record_function: {type(error).__name__}: {error}")


def _enter_spans_of_torch() -> None:
    """dynamo recognizes existing spans by `isinstance(span, torch.profiler.record_function)`, which is our class now.
    So torch's own class is entered into the table of exact types.
    """
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
