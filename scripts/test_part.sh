#!/bin/bash
# Runs one part of the tests; its output is shown if it fails.
set -eu
unset MAKEFLAGS # ninja would take make's jobs for its own

part=$1
log=build/test/$part.log
prefix=$PWD/build/test/prefix

# Builds and tests the core in a build directory of its own.
core() {
    local suite=$1
    shift
    [ -e "build/$part/build.ninja" ] ||
        meson setup "build/$part" -Dwerror=true --prefix="$prefix" \
            --libdir=lib "$@"
    meson test -C "build/$part" --print-errorlogs $suite
}

run() {
    case $part in
    layers) python3 scripts/check_layers.py ;;
    c) core "" -Dbench=true ;;
    asan) core "" -Dlibrary=false -Dbuildtype=debugoptimized \
        -Db_sanitize=address,undefined -Disal=disabled ;; # zlib's turn
    tsan) core "--suite tsan" -Dlibrary=false -Dbuildtype=debugoptimized \
        -Db_sanitize=thread -Dzstd=disabled -Dunwind=disabled \
        -Dsymbols=disabled ;; # a build without them
    install) scripts/test_install.sh build/c "$prefix" ;;
    clients) .venv/clients/bin/python -m pytest -q tests/clients ;;
    python-*) scripts/test_python.sh "${part#python-}" ;;
    esac
}

mkdir -p build/test
rm -f "build/test/$part.ok"
started=$SECONDS
if (run) >"$log" 2>&1; then
    touch "build/test/$part.ok"
    echo "ok    $part ($((SECONDS - started)) s)"
else
    echo "FAIL  $part ($((SECONDS - started)) s), see $log:"
    tail -n 60 "$log"
    exit 1
fi
