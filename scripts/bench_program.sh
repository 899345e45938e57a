#!/bin/sh
# Builds bench/record_file.c in build/bench, with the wheel's options (see
# pyproject.toml).
set -eu

PATH="$PWD/.venv/tools/bin:$PATH"
[ -e build/bench/build.ninja ] ||
    meson setup build/bench -Dbench=true -Dlibrary=false -Dtests=false \
        -Db_lto=true >/dev/null
env -u MAKEFLAGS meson compile -C build/bench >/dev/null
