#!/bin/sh
# Finds CPython interpreters: on PATH, then among pyenv's.
#
#   find_python.sh 3.12       the path of that version
#   find_python.sh --default  the version of python3
#   find_python.sh --all      the supported versions that are here
set -eu

supported="3.10 3.11 3.12 3.13"

# Prints where $1 really is, if it runs, is CPython and its version is $2.
probe() {
    "$1" -c 'import sys
if sys.implementation.name == "cpython" and "%d.%d" % sys.version_info[:2] == sys.argv[1]:
    print(sys._base_executable)  # not that of an environment' "$2" 2>/dev/null
}

find_version() {
    for candidate in "python$1" python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1"; do
        path=$(probe "$candidate" "$1") || continue
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
        find_version "$version" >/dev/null && echo "$version"
    done
    ;;
*)
    find_version "$1" || {
        echo "Python $1 was not found, neither on PATH nor in pyenv" >&2
        exit 1
    }
    ;;
esac
