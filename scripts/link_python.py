"""Links a program that is Python itself, out of the library that this interpreter brings, and puts it into an environment.

    python3.14 scripts/link_python.py shared .venv/3.14-shared    # libpython apart, as after --enable-shared
    python3.11 scripts/link_python.py static .venv/3.11-static    # libpython in the program

An interpreter has its library in one of the two ways, and mostly brings it along in both.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

PYTHON = """
#include <Python.h>

int main(int count, char **words)
{
    return Py_BytesMain(count, words);
}
"""


def variable(name):
    return sysconfig.get_config_var(name) or ""


def folders_of_libraries():
    """Returns the folders of this interpreter's libraries; the interpreter may be unpacked anywhere."""
    prefix = Path(sys.base_prefix)
    tripled = [folder / variable("MULTIARCH") for folder in (prefix / "lib", prefix.parent / "lib")]
    return [folder for folder in (*tripled, Path(variable("LIBDIR"))) if folder.is_dir()]


def loader():
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if re.search(r"/ld-[^/]*\.so", line))


def static_arguments():
    library = Path(sysconfig.get_path("stdlib")) / Path(variable("LIBPL")).name / variable("LIBRARY")
    words = " ".join(variable(name) for name in ("LINKFORSHARED", "MODLIBS", "LIBS", "SYSLIBS")).split()
    # Some of Debian's compiler flags are files of Debian's build folder.
    words = [word for word in words if word.startswith("-")]
    # Extension modules call functions that the program itself does not use.
    return library, ["-no-pie", "-Wl,--whole-archive", library, "-Wl,--no-whole-archive", *words, "-lm"]


def shared_arguments():
    folders = folders_of_libraries()
    library = next((path for folder in folders if (path := folder / variable("LDLIBRARY")).exists()), None)
    # The C library next to the interpreter may be newer than the one that we link with.
    paths = ",".join(["-Wl,--disable-new-dtags,--allow-shlib-undefined", *(f"-rpath,{folder}" for folder in folders)])
    return library, [library, paths, f"-Wl,--dynamic-linker={loader()}"]


def link(way, source, program):
    """Compiles C text and links it with the library, which must exist, in one of the two ways."""
    library, arguments = {"static": static_arguments, "shared": shared_arguments}[way]()
    if library is None or not library.exists():
        raise FileNotFoundError(f"{sys.base_prefix} has no library for this way of linking: {way}")
    command = ["cc", f"-I{sysconfig.get_path('include')}", "-x", "c", "-", "-x", "none", *arguments]
    done = subprocess.run([*command, "-o", program], input=source, text=True, stderr=subprocess.PIPE)
    if done.returncode:
        raise OSError(f"{library} cannot be linked here: {done.stderr[-1000:]}")


def main():
    way, environment = sys.argv[1:]
    programs = Path(environment, "bin")
    for old in programs.glob("python*"):
        old.unlink()
    link(way, PYTHON, programs / "python")
    for name in ("python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        os.symlink("python", programs / name)


if __name__ == "__main__":
    main()
