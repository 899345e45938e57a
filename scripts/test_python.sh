#!/bin/sh
# Runs the Python tests on Python $1. Before that, the extension must compile
# without a warning.
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
build=build/werror-$1
[ -e "$build/build.ninja" ] ||
    meson setup "$build" -Dwerror=true -Dbuildtype=debug -Dpython=true \
        -Dlibrary=false -Dtests=false
ninja -C "$build"

python -m vestige.torch_build # where torch is: tests do not wait for it
pytest -q tests/python
