#!/bin/sh
# Finds CPython interpreters: on PATH, then among pyenv's, then in the cache that
# pythons.sh fills.
#
#   find_python.sh 3.12       the path of that version
#   find_python.sh 3.14-dbg   of its debug build; 3.13-debian of Debian's, from the cache
#   find_python.sh 3.14t      of its build without the GIL; 3.14t-tsan is in the cache
#   find_python.sh --default  the version of python3
#   find_python.sh --all      the supported versions that are here
#   find_python.sh --missing  those that are not
#   find_python.sh --free-threaded   the builds without the GIL that are here; --no-free-threaded those that are not
#   find_python.sh --tools    the path of the newest that can make an environment with pip
set -eu

supported="3.11 3.12 3.13 3.14 3.15"
free_threaded="3.14t 3.15t"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vestige/pythons

# Prints the real path of $1 if it runs, is CPython of version $2 (with a "t": without the GIL), and is a
# debug build if $3 says so.
probe() {
    "$1" -c 'import sys
version = "%d.%d" % sys.version_info[:2] + "t" * ("t" in sys.abiflags)
if (sys.implementation.name, version) == ("cpython", sys.argv[1]):
    if hasattr(sys, "gettotalrefcount") == (sys.argv[2] == "-dbg"):
        print(sys._base_executable)  # not that of an environment' "$2" "$3" 2>/dev/null
}

find_version() {
    version=${1%-*}
    kind=${1#"$version"}
    case $kind in
    -debian | -tsan) set -- "$cache/$1/usr/bin/python$version" ;;
    -dbg) set -- "python$version-dbg" "$cache/$1/usr/bin/python$version-dbg" ;;
    *) set -- "python$version" python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/"python$version" \
        "$cache/$1/usr/bin/python$version" ;;
    esac
    for candidate; do
        path=$(probe "$candidate" "$version" "$kind") || continue
        [ -n "$path" ] && echo "$path" && return
    done
    return 1
}

case ${1:-} in
--default)
    python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'
    ;;
--all)
    for version in $supported; do
        if find_version "$version" >/dev/null; then echo "$version"; fi
    done
    ;;
--missing)
    for version in $supported; do
        find_version "$version" >/dev/null || echo "$version"
    done
    ;;
--free-threaded)
    for version in $free_threaded; do
        if find_version "$version" >/dev/null; then echo "$version"; fi
    done
    ;;
--no-free-threaded)
    for version in $free_threaded; do
        find_version "$version" >/dev/null || echo "$version"
    done
    ;;
--tools)
    for version in $supported; do
        python=$(find_version "$version") || continue
        if "$python" -c 'import ensurepip' 2>/dev/null; then newest=$python; fi
    done
    echo "${newest:?no Python here has ensurepip, which Debian has in python3-venv}"
    ;;
*)
    find_version "$1" || {
        echo "Python $1 was not found, neither on PATH nor in pyenv; scripts/pythons.sh may have it" >&2
        exit 1
    }
    ;;
esac
