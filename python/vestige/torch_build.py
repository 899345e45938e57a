"""Builds the observer of torch's operators: a library for one version of torch and one of vestige.

`python -m vestige.torch_build` builds it into the package itself, for all who use it; else it is built on first use
into the user's cache. It is complete under its name or not there: processes that build it at once do not disturb each
other. Behind the library's own bytes stands a check of them: loading half a library would end the process.
"""

from __future__ import annotations

import os
import sys
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_torch")
SOURCE = os.path.join(HOME, "operators.cpp")
SEAL = b"vestige, whole: "
COMPILERS = ("c++", "g++", "clang++")


class BuildError(Exception):
    """Says what is missing."""


def find(torch: ModuleType, tell: Callable[[str], None]) -> Any:
    """The library for this torch, loaded: the package's, the cache's, or a new one. BuildError if there can be none."""
    name = library_name(torch)
    for folder in (HOME, cache_folder()):
        library = _load(os.path.join(folder, name), torch)
        if library is not None:
            return library
    folder = cache_folder()
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        pass
    if os.access(folder, os.W_OK):
        return _build_in(folder, name, torch, tell)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="vestige-") as folder:
        return _build_in(folder, name, torch, tell)


def _build_in(folder: str, name: str, torch: ModuleType, tell: Callable[[str], None]) -> Any:
    path = os.path.join(folder, name)
    with _Lock(path):
        library = _load(path, torch)  # another process was faster
        if library is None:
            _compiler()  # or it says what is missing
            tell(f"building the recorder of operators for torch {torch.__version__} once, in {folder}")
            build(torch, path)
            library = _load(path, torch)
    if library is None:
        raise BuildError(f"{path} was built but cannot be loaded")
    return library


def library_name(torch: ModuleType) -> str:
    """Of the file that belongs to this torch, this vestige and this machine."""
    state = 0
    for path in _sources():
        with open(path, "rb") as file:
            state = crc32(file.read(), state)
    return f"operators-{torch.__version__}-{_version()}-{state:08x}-{os.uname().machine}.so"


def cache_folder() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "vestige", "torch")


def build(torch: ModuleType, path: str) -> None:
    """Compiles the library to path, which has it as a whole or not at all."""
    import subprocess
    import tempfile

    compiler = _compiler()
    home = os.path.dirname(os.path.abspath(str(torch.__file__)))
    include = os.path.join(home, "include")
    if not os.path.isfile(os.path.join(include, "ATen", "record_function.h")):
        raise BuildError(f"this torch has no headers in {include}")
    handle, temporary = tempfile.mkstemp(prefix=".operators-", suffix=".so", dir=os.path.dirname(path))
    os.close(handle)
    abi = int(bool(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)))
    command = [
        *compiler,
        *("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        *("-I", os.path.join(HOME, "include"), "-isystem", include),
        *("-isystem", os.path.join(include, "torch", "csrc", "api", "include")),
        *(SOURCE, "-o", temporary),
        *("-L", os.path.join(home, "lib"), "-ltorch_cpu", "-lc10"),
    ]
    environment = {**os.environ, "LC_ALL": "C"}
    environment.pop("LD_PRELOAD", None)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").splitlines()
            first = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")
            raise BuildError(f"{compiler[0]} failed: {first.strip()[:300]}")
        _seal(temporary)
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except OSError as error:
        raise BuildError(f"{compiler[0]} could not be run: {error}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _compiler() -> list[str]:
    from shlex import split
    from shutil import which

    given = split(os.environ.get("CXX", ""))
    if given:
        if which(given[0]) is None:
            raise BuildError(f"CXX names {given[0]}, which is not there")
        return given
    for name in COMPILERS:
        path = which(name)
        if path is not None:
            return [path]
    raise BuildError(f"no C++ compiler to build for torch with: install one of {', '.join(COMPILERS)}, or set CXX")


def _seal(path: str) -> None:
    with open(path, "r+b") as file:
        check = crc32(file.read())
        file.write(SEAL + check.to_bytes(4, "little"))
        file.flush()
        os.fsync(file.fileno())


def _is_whole(path: str) -> bool:
    with open(path, "rb") as file:
        data = file.read()
    end = len(data) - len(SEAL) - 4
    return end > 0 and data[end:] == SEAL + crc32(data[:end]).to_bytes(4, "little")


def _load(path: str, torch: ModuleType) -> Any:
    """None for a file that is not there, or broken, which is removed where it can be."""
    import ctypes

    if not os.path.isfile(path):
        return None
    try:
        if not _is_whole(path):
            raise OSError("it was cut off")
        library = ctypes.CDLL(path)
        library.vst_torch_built_for.restype = ctypes.c_char_p
        library.vst_torch_start.argtypes = (ctypes.c_void_p, ctypes.c_uint)
        library.vst_torch_stop.restype = None
        library.vst_torch_make_way.restype = None
        library.vst_torch_graph.argtypes = (ctypes.c_uint, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
        built_for = library.vst_torch_built_for().decode()
        if str(torch.__version__).partition("+")[0] == built_for.partition("+")[0]:
            return library
    except (OSError, AttributeError):
        pass
    try:
        os.unlink(path)
    except OSError:
        pass
    return None


class _Lock:
    """Keeps others from building the same; where files cannot be locked, they do it twice, and nothing is lost."""

    def __init__(self, path: str) -> None:
        self._path = path + ".lock"
        self._file: int | None = None

    def __enter__(self) -> None:
        import fcntl

        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            pass

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            os.close(self._file)


def _sources() -> list[str]:
    headers = os.path.join(HOME, "include", "vestige")
    names = sorted(name for name in os.listdir(headers) if name.endswith(".h"))
    own = [os.path.join(HOME, name) for name in sorted(os.listdir(HOME)) if name.endswith(".h")]
    return [SOURCE, *own, *(os.path.join(headers, name) for name in names)]


def _version() -> str:
    from . import __version__

    return __version__


def main() -> int:
    """Builds into the package, where torch is installed; says nothing where it is not."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return 0
    import torch

    path = os.path.join(HOME, library_name(torch))
    if _load(path, torch) is None:
        try:
            print(f"building the recorder of operators for torch {torch.__version__}")
            for name in os.listdir(HOME):  # those of other versions
                if name.endswith(".so"):
                    os.unlink(os.path.join(HOME, name))
            build(torch, path)
        except BuildError as error:
            print(f"no recorder of torch's operators: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
