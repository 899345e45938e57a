"""Finds or builds the observer of torch's operators, a library for one version of torch and one version of vestige.

Wheels contain the library for some versions of torch (scripts/wheels/adapters.py). For others, `python -m
vestige.torch.build` builds it into the package itself, for all its users; else it is built on first use into the user's
cache. The file gets its name when it is complete, so processes that build it at the same time do not
disturb each other. A hash follows the library's own bytes: loading half a library would crash the process. Nothing is
loaded from a cache that another user could have written to (private_folder): one line says so, and the next folder is
tried, at last a temporary one.
"""

from __future__ import annotations

import os
import sys

from vestige.base import private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

HOME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_torch")
PREBUILT = os.path.join(HOME, "prebuilt")  # libraries from the wheel
SOURCE = os.path.join(HOME, "operators.cpp")
SEAL = b"vestige, whole: "  # followed by a SHA-256
SEAL_SIZE = len(SEAL) + 32
LOCK_SECONDS = 600  # longer than any build takes; a stopped build still holds its lock
COMPILERS = ("c++", "g++", "clang++")


class BuildError(Exception):
    """The message says what is missing."""


class Installed:
    """The facts about an installed torch that this process has not loaded, read from its files. The library for this
    torch can be found and built, but not used here.
    """

    def __init__(self, home: str) -> None:
        import re

        with open(os.path.join(home, "version.py"), encoding="utf-8") as file:
            facts = dict(re.findall(r"^(__version__|git_version) = '([^']+)'", file.read(), re.MULTILINE))
        self.__version__ = facts["__version__"]
        self.__file__ = os.path.join(home, "__init__.py")
        self.version = self
        self.git_version = facts["git_version"]
        self._C = None  # Installed torches use the C++ ABI of torch's wheels.


def unbuilt() -> str | None:
    """Returns the folder of a torch that this process has not loaded but could load, if no library for it exists."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("torch") if "torch" not in sys.modules else None
    if spec is None or not spec.origin or os.environ.get("VESTIGE_TORCH", "") == "0":
        return None
    home, loaded = os.path.dirname(spec.origin), set(sys.modules)
    try:
        find(Installed(home), lambda line: None, builds=False)  # type: ignore[arg-type]
    except BuildError:
        return home
    except (OSError, KeyError, ValueError):  # the folder holds no torch
        pass
    finally:
        for name in set(sys.modules) - loaded:  # the program may have modules with these names
            if not name.startswith("vestige"):
                del sys.modules[name]
    return None


def find(torch: ModuleType, tell: Callable[[str], None], builds: bool = True) -> Any:
    """Returns the loaded library for this torch, from the package, the wheel, the cache, or a new build. Raises
    BuildError if there can be no library, or if there is none and `builds` is false.
    """
    name = library_name(torch)
    library = _load(os.path.join(HOME, name), torch) or _load_prebuilt(torch)
    if library is not None:
        return library
    refused: list[str] = []
    for folder in cache_folders():
        try:
            private_folder.make(folder)
            library = _load_own(os.path.join(folder, name), torch)
            if library is None and builds and os.access(folder, os.W_OK):
                library = _build_in(folder, name, torch, tell)
        except private_folder.Refused as error:
            refused.append(str(error))
        except OSError:
            pass  # the folder does not exist and cannot be made
        if library is not None:
            _tell_refused(refused, f"{folder} is used instead", tell)
            return library
    if not builds or isinstance(torch, Installed):
        _compiler()  # raises BuildError if there is no compiler
        raise BuildError(
            f"there is no recorder for torch {torch.__version__} yet, and none is built while a program is recorded; "
            "`python -m vestige.torch.build` builds it"
        )
    return _build_for_now(name, torch, tell, refused)


def _build_for_now(name: str, torch: ModuleType, tell: Callable[[str], None], refused: list[str]) -> Any:
    """Builds the library for this process alone, if there is no cache."""
    import tempfile

    home = tempfile.gettempdir()
    try:
        private_folder.check(home)
    except private_folder.Refused as error:
        reasons = "; ".join(dict.fromkeys([*refused, str(error)]))
        raise BuildError(f"no folder to build in is safe: {reasons}") from None
    _tell_refused(refused, "the recorder of operators is built for this process alone", tell)
    with tempfile.TemporaryDirectory(prefix="vestige-", dir=home) as folder:
        return _build_in(folder, name, torch, tell)


def _tell_refused(refused: list[str], instead: str, tell: Callable[[str], None]) -> None:
    if refused:
        tell(f"a cache of native code is not safe, so it is not used: {'; '.join(dict.fromkeys(refused))}; {instead}")


def _build_in(folder: str, name: str, torch: ModuleType, tell: Callable[[str], None]) -> Any:
    path = os.path.join(folder, name)
    with _Lock(path):
        library = _load_own(path, torch)  # another process may have built it meanwhile
        if library is None:
            _compiler()  # raises BuildError if there is no compiler
            tell(f"building the recorder of operators for torch {torch.__version__} once, in {folder}")
            build(torch, path)
            library = _load_own(path, torch)
    if library is None:
        raise BuildError(f"{path} was built but cannot be loaded")
    return library


def library_name(torch: ModuleType) -> str:
    """Returns the name of the file for this torch, this vestige and this machine."""
    return f"operators-{torch.__version__}-{_version()}-{_digest()}-{os.uname().machine}.so"


def prebuilt_name(torch: ModuleType) -> str:
    """Returns the name of a wheel's file for this torch. Builds of one torch commit for processors and for various GPUs
    have equal headers where the observer includes them, so the name contains only the commit and the C++ ABI.
    """
    version = str(torch.__version__).partition("+")[0]
    commit = str(getattr(getattr(torch, "version", None), "git_version", None))[:12]
    return f"operators-{version}-{commit}-cxx{'11' if _abi(torch) else '98'}-{_digest()}-{os.uname().machine}.so"


def _abi(torch: ModuleType) -> int:
    return int(bool(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)))


def _digest() -> str:
    """Returns a hash of the files that the library is built from."""
    from hashlib import sha256

    state = sha256()
    for path in _sources():
        with open(path, "rb") as file:
            state.update(file.read())
    return state.hexdigest()[:16]


def cache_folders() -> list[str]:
    """Returns the folders that may hold this user's libraries, the preferred folder first. Ignores relative paths."""
    caches = [os.environ.get("XDG_CACHE_HOME", "")]
    for home in (os.environ.get("HOME", ""), _home_of_user()):
        if home.startswith("/"):
            caches.append(os.path.join(home, ".cache"))
    found = [os.path.join(cache, "vestige", "torch") for cache in caches if cache.startswith("/")]
    return list(dict.fromkeys(map(os.path.normpath, found)))


def _home_of_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # the system does not know this user
        return ""


def build(torch: ModuleType, path: str) -> None:
    """Compiles the library. `path` is complete or does not exist."""
    import subprocess
    import tempfile

    compiler = _compiler()
    home = os.path.dirname(os.path.abspath(str(torch.__file__)))
    include = os.path.join(home, "include")
    if not os.path.isfile(os.path.join(include, "ATen", "record_function.h")):
        raise BuildError(f"this torch has no headers in {include}")
    handle, temporary = tempfile.mkstemp(prefix=".operators-", suffix=".so", dir=os.path.dirname(path))
    os.close(handle)
    command = [
        *compiler,
        *("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={_abi(torch)}",
        *("-I", os.path.join(HOME, "include"), "-isystem", include),
        *("-isystem", os.path.join(include, "torch", "csrc", "api", "include")),
        *(SOURCE, "-o", temporary),
        *("-L", os.path.join(home, "lib"), "-ltorch_cpu", "-lc10", "-ldl"),
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
        os.chmod(temporary, 0o755 if os.path.dirname(path) == HOME else 0o700)
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
            raise BuildError(f"CXX names {given[0]}, which was not found")
        return given
    for name in COMPILERS:
        path = which(name)
        if path is not None:
            return [path]
    raise BuildError(f"no C++ compiler to build for torch with: install one of {', '.join(COMPILERS)}, or set CXX")


def _seal(path: str) -> None:
    from hashlib import sha256

    with open(path, "r+b") as file:
        digest = sha256(file.read()).digest()
        file.write(SEAL + digest)
        file.flush()
        os.fsync(file.fileno())


def _is_whole(path: str) -> bool:
    from hashlib import sha256

    with open(path, "rb") as file:
        data = file.read()
    end = len(data) - SEAL_SIZE
    return end > 0 and data[end:] == SEAL + sha256(data[:end]).digest()


def _load_own(path: str, torch: ModuleType) -> Any:
    """Loads a library from a safe folder. A file there that is not this user's, or that others can write to, is older
    than the folder's protection, and is removed.
    """
    try:
        if private_folder.is_own_file(path):
            return _load(path, torch)
        os.unlink(path)
    except OSError:
        pass
    return None


def _load_prebuilt(torch: ModuleType) -> Any:
    """Loads a library of the wheel. A broken file stays, because it belongs to the installer."""
    return _open(os.path.join(PREBUILT, prebuilt_name(torch)), torch)


def _load(path: str, torch: ModuleType) -> Any:
    """Loads a library. Returns None if the file is missing or broken; removes a broken file if possible."""
    if not os.path.isfile(path):
        return None
    library = _open(path, torch)
    if library is None:
        try:
            os.unlink(path)
        except OSError:
            pass
    return library


def _open(path: str, torch: ModuleType) -> Any:
    """Returns None if the file is missing, broken or built for another torch."""
    if not os.path.isfile(path):
        return None
    try:
        if not _is_whole(path):
            raise OSError("the file is incomplete")
        if isinstance(torch, Installed):
            return path
        import ctypes

        library = ctypes.CDLL(path)
        library.vst_torch_built_for.restype = ctypes.c_char_p
        library.vst_torch_start.argtypes = (ctypes.c_void_p, ctypes.c_uint)
        library.vst_torch_stop.restype = None
        library.vst_torch_make_way.restype = None
        library.vst_torch_allocated_before.restype = ctypes.c_int64
        library.vst_torch_graph.argtypes = (ctypes.c_uint, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
        built_for = library.vst_torch_built_for().decode()
        if str(torch.__version__).partition("+")[0] == built_for.partition("+")[0]:
            return library
    except (OSError, AttributeError):
        pass
    return None


class _Lock:
    """Keeps other processes from building the same library. If the lock file cannot be locked, belongs to another user,
    or stays locked for longer than a build takes, the library is built twice, which is harmless.
    """

    def __init__(self, path: str) -> None:
        self._path = path + ".lock"
        self._file: int | None = None

    def __enter__(self) -> None:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if os.fstat(self._file).st_uid == os.geteuid():
                self._wait()
        except OSError:
            pass

    def _wait(self) -> None:
        import fcntl
        import time

        end = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < end and self._file is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.05)

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            os.close(self._file)


def _sources() -> list[str]:
    headers = os.path.join(HOME, "include", "vestige")
    names = sorted(name for name in os.listdir(headers) if name.endswith(".h"))
    own = [os.path.join(HOME, name) for name in sorted(os.listdir(HOME)) if name.endswith(".h")]
    return [SOURCE, *own, *(os.path.join(headers, name) for name in names)]


def _version() -> str:
    from vestige import __version__

    return __version__


def main() -> int:
    """Builds into the package if torch is installed and the wheel has no library for it; else prints nothing. With the
    folder of a torch, before a program runs that may load it, builds into the user's cache. Failures are reported by
    the recording.
    """
    if sys.argv[1:]:
        try:
            find(Installed(sys.argv[1]), lambda line: print(f"vestige: {line}", file=sys.stderr))  # type: ignore[arg-type]
        except BuildError:
            pass
        return 0
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return 0
    import torch

    path = os.path.join(HOME, library_name(torch))
    if (_load(path, torch) or _load_prebuilt(torch)) is None:
        try:
            print(f"building the recorder of operators for torch {torch.__version__}")
            for name in os.listdir(HOME):  # libraries of other versions
                if name.endswith(".so"):
                    os.unlink(os.path.join(HOME, name))
            build(torch, path)
        except BuildError as error:
            print(f"no recorder of torch's operators: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
