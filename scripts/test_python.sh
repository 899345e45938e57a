#!/bin/sh
# Runs the Python tests on Python $1. Before that, the extension must compile
# without a warning; the core does so in a part of its own. What is the same on
# every Python runs on the oldest and the newest.
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
build=build/werror-$1
[ -e "$build/build.ninja" ] ||
    meson setup "$build" -Dwerror=true -Dbuildtype=debug -Dpython=true \
        -Dlibrary=false -Dtests=false
# shellcheck disable=SC2046 # a list of files
ninja -C "$build" $(ninja -C "$build" -t targets all |
    sed -n 's/^\(python\/_core[^:]*\/ext_[^:]*\.o\):.*/\1/p')

python -m vestige.torch_build # where torch is: tests do not wait for it
all=$(scripts/find_python.sh --all)
case $1 in
"$(echo "$all" | head -n 1)" | "$(echo "$all" | tail -n 1)") marked= ;;
*) marked="not any_python" ;;
esac
pytest -q -m "$marked" tests/python
