"""Finds hooks of vestige's that are left in this interpreter. Reads the interpreter's own structures instead of asking
vestige: once a recording is over, no pointer to code may lead into vestige's extension.

The layouts are those of CPython 3.11 to 3.15 on 64 bits.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types

WORD = 8
HEAD = object.__basicsize__  # longer without the GIL
IN_FUNCTION = HEAD  # PyCFunctionObject.m_ml
IN_DESCRIPTOR = HEAD + 3 * WORD  # PyMethodDescrObject.d_method
IN_DEFINITION = WORD  # PyMethodDef.ml_meth, after its ml_name
THREAD_STATE = 200  # bytes of a thread state that hold the thread's hooks; every version's thread state is longer


def left() -> list[str]:
    """Returns a line for each hook found; there should be none."""
    core = sys.modules.get("vestige._core")
    if core is None:
        return []
    images = _images(core.__file__)
    found = [f"{name} calls vestige" for name in _functions(images)]
    found += [f"the thread's state holds {address:#x}" for address in _thread_state() if _is_in(address, images)]
    if sys.version_info < (3, 12):
        get = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc
        get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
        if _is_in(get(_interpreter()), images):
            found.append("frames are evaluated by vestige")
    else:
        tools = (sys.monitoring.get_tool(number) for number in range(6))
        found += [f"tool {number} is {name}" for number, name in enumerate(tools) if name == "vestige"]
    found += [
        f"gc.callbacks has {call!r}" for call in gc.callbacks if "vestige" in str(getattr(call, "__module__", ""))
    ]
    if "vestige" in str(getattr(sys.getprofile(), "__module__", "")):
        found.append("sys.getprofile() is vestige's")
    return found


def _images(path: str) -> list[tuple[int, int]]:
    """Returns the extension's addresses in memory."""
    ranges = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith(path):
                start, end = line.split()[0].split("-")
                ranges.append((int(start, 16), int(end, 16)))
    return ranges


def _is_in(address: int | None, images: list[tuple[int, int]]) -> bool:
    return address is not None and any(start <= address < end for start, end in images)


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _functions(images: list[tuple[int, int]]) -> list[str]:
    """Yields every reachable C function that runs vestige's code, except vestige's own functions, whose names also lie
    in the extension.
    """
    found = []
    for value in gc.get_objects():
        kind = type(value)
        if kind is types.BuiltinFunctionType:
            definition = _word(id(value) + IN_FUNCTION)
        elif kind in (types.MethodDescriptorType, types.ClassMethodDescriptorType):
            definition = _word(id(value) + IN_DESCRIPTOR)
        else:
            continue
        if _is_in(_word(definition + IN_DEFINITION), images) and not _is_in(_word(definition), images):
            found.append(value.__qualname__)
    return found


def _thread_state() -> list[int]:
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    state = get()
    return [_word(state + at) for at in range(0, THREAD_STATE, WORD)]


def _interpreter() -> int:
    get = ctypes.pythonapi.PyInterpreterState_Get
    get.restype = ctypes.c_void_p
    return get()
