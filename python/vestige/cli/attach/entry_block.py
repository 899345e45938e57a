"""The block of code that gdb puts into a process; it runs startup/attached.py in a thread of its own. The block has a
table of the interpreter's functions, the two functions of python/ext/session/entry_code.c, and attached.py as a code
object. It does not contain its own address and is never written to, so a later attachment to the same program finds the
block by its bytes, and uses it again.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct

from vestige import _core
from vestige.base.failure import Failure
from vestige.recording.children import STARTUP

from .elf import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .target import Target

SCRIPT = os.path.join(STARTUP, "attached.py")
SIZE = 16384  # whole pages
HEAD = struct.Struct("<16Q4q")
FUNCTIONS = (  # in the order of struct vpy_entry
    "Py_IsInitialized",
    "PyImport_GetMagicNumber",
    "PyThread_allocate_lock",
    "PyThread_acquire_lock",
    "PyThread_release_lock",
    "PyThread_free_lock",
    "PyThread_start_new_thread",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyDict_New",
    "PyMarshal_ReadObjectFromString",
    "PyEval_EvalCode",
    "Py_DecRef",
    "PyErr_Clear",
)
BEGIN_AT = HEAD.size  # the function to call, with the address of the block as its argument


def make(target: Target) -> bytes:
    """Returns the block for a process, SIZE bytes."""
    addresses = [target.library.address(name) for name in FUNCTIONS]
    if not all(addresses) or target.libc is None or not target.libc.address("mmap"):
        raise Failure(f"process {target.pid}: functions of its Python or C library were not found")
    own = Library(_core.__file__, 0)
    begin, run = _aligned(own.code("vpy_entry_begin")), _aligned(own.code("vpy_entry_run"))
    with open(SCRIPT, encoding="utf-8") as file:
        code = marshal.dumps(compile("alone = True\n" + file.read(), SCRIPT, "exec", dont_inherit=True))
    magic = int.from_bytes(importlib.util.MAGIC_NUMBER, "little")
    run_at = BEGIN_AT + len(begin)
    head = HEAD.pack(*addresses, magic, run_at, run_at + len(run), len(code))
    return (head + begin + run + code).ljust(SIZE, b"\0")


def _aligned(code: bytes) -> bytes:
    return code + bytes(-len(code) % 16)
