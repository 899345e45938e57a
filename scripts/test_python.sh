#!/bin/sh
# Runs the Python tests on Python $1. Before that, the extension must compile
# without a warning; the core does so in a part of its own.
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
pytest -q tests/python
