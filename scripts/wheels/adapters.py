#!/usr/bin/env python3
"""Builds the observer of torch's operators ahead of time, for each version of torch that torch.txt names.

    python adapters.py WHEEL FOLDER [VERSION ...]

They are built from the sources in WHEEL, by $CXX or g++, into FOLDER, where what is there already is kept. No torch is
installed: its headers come out of the wheel that PyPI serves, and stay in a cache folder outside of the tree with a
list of what its libraries define. The name says which torch a library is for: its version, its commit and its C++ ABI,
as vestige/torch/build.py looks for it. A library is refused if it needs something that this torch does not define, or
a C or C++ library newer than manylinux_2_28 allows.
"""

import argparse
import ast
import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = "vestige/_torch/"  # path in a wheel
LIBRARIES = ("torch_cpu", "c10")
ABI = 1  # the C++ ABI of all wheels of torch since 2.7
SEAL = b"vestige, whole: "  # the same name as in build.py
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}  # of manylinux_2_28
FLAGS = "-std=c++20 -O2 -DNDEBUG -fPIC -shared -fvisibility=hidden -pthread".split()


class CannotError(Exception):
    """Raises an error that says which part is missing."""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise CannotError(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


# ---- torch's headers --------------------------------------------------------------


def cache_folder():
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "vestige" / "torch-headers"


def bring_headers(version):
    """Returns the folder with include/, symbols and version.py of a torch, which is downloaded once."""
    final = cache_folder() / f"{version}-{platform.machine()}"
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".torch-") as name:
        work = Path(name)
        print(f"bringing the headers of torch {version}, some 500 MB", flush=True)
        run(
            *(sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"),
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.12"),
            *("--platform", f"manylinux_2_28_{platform.machine()}", "-d", work, f"torch==={version}"),
        )
        (wheel,) = work.glob("torch-*.whl")
        with zipfile.ZipFile(wheel) as torch:
            wanted = [f"torch/lib/lib{name}.so" for name in LIBRARIES] + ["torch/version.py"]
            headers = [name for name in torch.namelist() if name.startswith("torch/include/")]
            torch.extractall(work, headers + wanted)
        symbols = run("nm", "-D", "--defined-only", "--format=just-symbols", *(work / name for name in wanted[:-1]))
        (work / "torch" / "symbols").write_text(symbols)
        for name in wanted[:-1]:
            (work / name).unlink()
        os.rename(work / "torch", final)
    return final


def commit_of(torch):
    """Returns torch.version.git_version without running torch."""
    for statement in ast.parse((torch / "version.py").read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "git_version":
            return statement.value.value
    raise CannotError("this torch does not name its commit")


# ---- a library --------------------------------------------------------------------


def digest_of(wheel):
    """Returns the hash of the sources, as build.py computes it when vestige is installed."""
    names = [name.removeprefix(HOME) for name in wheel.namelist() if name.startswith(HOME)]
    own = sorted(name for name in names if "/" not in name and name.endswith(".h"))
    public = sorted(name for name in names if name.startswith("include/vestige/") and name.endswith(".h"))
    state = hashlib.sha256()
    for name in ["operators.cpp", *own, *public]:
        state.update(wheel.read(HOME + name))
    return state.hexdigest()[:16]


def name_of(version, commit, wheel):
    """Returns the library's name, for which vestige/torch/build.py looks."""
    return f"operators-{version}-{commit[:12]}-cxx11-{digest_of(wheel)}-{platform.machine()}.so"


def compile_for(torch, sources, path):
    """Links against empty libraries with torch's names: torch's symbols are resolved when the adapter is loaded, and
    are checked by check().
    """
    work = path.parent
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    for name in LIBRARIES:
        empty = ("-shared", "-nostdlib", "-xc++", os.devnull, f"-Wl,-soname,lib{name}.so")
        run(*compiler, *empty, "-o", work / f"lib{name}.so")
    include = torch / "include"
    run(
        *(*compiler, *FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={ABI}", "-include", HERE / "older_library.h"),
        *(f"-ffile-prefix-map={torch}=torch", f"-ffile-prefix-map={sources}=vestige"),
        *("-I", sources / "include", "-isystem", include, "-isystem", include / "torch" / "csrc" / "api" / "include"),
        *(sources / "operators.cpp", "-o", path, "-L", work, "-Wl,--no-as-needed"),
        *(f"-l{name}" for name in (*LIBRARIES, "dl")),
    )
    run("strip", path)


def check(path, torch):
    defined = set((torch / "symbols").read_text().split())
    for line in run("nm", "-D", "--undefined-only", path).splitlines():
        kind, _, name = line.strip().partition(" ")
        symbol, _, version = name.partition("@")
        if not version and kind == "U" and symbol not in defined:
            raise CannotError(f"it needs {symbol}, which this torch does not define")
        found = re.fullmatch(r"@?([A-Z]+)_([0-9.]+)", version)
        if found and tuple(map(int, found[2].split("."))) > NEWEST.get(found[1], ()):
            raise CannotError(f"it needs {name}, which is newer than manylinux_2_28")


def seal(path):
    data = path.read_bytes()
    path.write_bytes(data + SEAL + hashlib.sha256(data).digest())


def make(version, wheel, folder):
    torch = bring_headers(version)
    name = name_of(version, commit_of(torch), wheel)
    if (folder / name).exists():
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".work-") as work:
        sources = Path(work) / "sources"
        for each in wheel.namelist():
            if each.startswith(HOME) and not each.endswith("/"):
                path = sources / each.removeprefix(HOME)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(wheel.read(each))
        path = Path(work) / "operators.so"
        compile_for(torch, sources, path)
        check(path, torch)
        seal(path)
        path.chmod(0o755)
        os.replace(path, folder / name)
    print(f"{folder / name} ({(folder / name).stat().st_size / 1e3:.0f} kB)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="of torch; those of torch.txt unless given")
    options = parser.parse_args()
    listed = [line for line in (HERE / "torch.txt").read_text().split("\n") if line and not line.startswith("#")]
    options.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(options.wheel) as wheel:
        for version in options.versions or listed:
            try:
                make(version, wheel, options.folder)
            except CannotError as error:
                sys.exit(f"no observer of operators for torch {version}: {error}")


if __name__ == "__main__":
    main()
