#!/bin/sh
# Runs the Python tests on Python $1; on the default one also those that read
# our traces with other people's programs. Before that, the extension must
# compile without a warning.
set -eu

default=$(scripts/find_python.sh --default)
PATH="$PWD/.venv/$1/bin:$PATH"
build=build/werror-$1
[ -e "$build/build.ninja" ] ||
    meson setup "$build" -Dwerror=true -Dbuildtype=debug -Dpython=true \
        -Dlibrary=false -Dtests=false
ninja -C "$build"

tests=tests/python
if [ "$1" = "$default" ]; then
    pip install -qq --disable-pip-version-check \
        -r tests/clients/requirements.txt
    tests="$tests tests/clients"
fi
python -m vestige.torch_build # where torch is: tests do not wait for it
# shellcheck disable=SC2086 # one or two folders
pytest -q $tests
