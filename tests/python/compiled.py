"""C code that tests compile on demand: shared libraries for ctypes, and extension modules."""

import atexit
import hashlib
import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INCLUDE = HERE.parent.parent / "include"

_folder = tempfile.TemporaryDirectory(prefix="vestige-tests-")
atexit.register(_folder.cleanup)  # without the ResourceWarning that some Pythons show


COMPILERS = {"c": ("cc", "-std=gnu11"), "c++": ("c++", "-std=c++17")}


def need_compiler(language="c"):
    """Skips the test if there is no compiler; for tests that compile in another process."""
    if shutil.which(COMPILERS[language][0]) is None:
        pytest.skip("no compiler is here for what the test needs in C", allow_module_level=True)


def library(source, *flags, language="c"):
    """Returns the path of a shared library made from C or C++ text. Without a compiler, the test is skipped."""
    need_compiler(language)
    digest = hashlib.sha256(repr((source, flags, sys.version)).encode()).hexdigest()[:16]
    path = Path(_folder.name) / f"{digest}.so"
    if not path.exists():
        text = path.with_suffix("." + language)
        text.write_text(source)
        command = [
            *COMPILERS[language],
            *("-O1", "-g", "-Wall", "-Werror", "-fPIC", "-shared", "-pthread"),
            f"-I{sysconfig.get_path('include')}",
            f"-I{INCLUDE}",
            *(str(text), "-o", str(path)),
            *flags,
        ]
        subprocess.run(command, check=True)
    return path


def module(name, source, *flags, language="c"):
    """Returns an extension module made from C or C++ text; the file may be loaded under one name only."""
    path = library(source, *flags, language=language)
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    made = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    return made
