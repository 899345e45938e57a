#!/bin/bash
# Runs one part of the tests. If it fails, what failed is shown, names first;
# all of its output is in build/test/<part>.log.
set -eu
unset MAKEFLAGS # ninja would take make's jobs for its own

part=$1
log=build/test/$part.log
prefix=$PWD/build/test/prefix

# Sets up a build directory for the core, where it is not there.
setup() {
    local build=build/$1
    shift
    [ -e "$build/build.ninja" ] ||
        meson setup "$build" -Dwerror=true --prefix="$prefix" --libdir=lib "$@"
}

# Builds and tests the core in a build directory of its own.
core() {
    local suite=$1
    shift
    setup "$part" "$@"
    # shellcheck disable=SC2086 # nothing, or an option and its value
    meson test -C "build/$part" --print-errorlogs $suite
}

# Only .venv/clients has DuckDB: other tests that need it run there, too.
clients() {
    local failed=0
    .venv/clients/bin/python -m pytest -q -rfEs tests/clients || failed=1
    # shellcheck disable=SC2046 # a list of files
    .venv/clients/bin/python -m pytest -q -rfEs -m sql \
        $(grep -l mark.sql tests/python/test_*.py) || failed=1
    return "$failed"
}

run() {
    case $part in
    lint) scripts/lint.sh ;;
    layers) python3 scripts/check_layers.py ;;
    core) setup c -Dbench=true && ninja -C build/c src/libvestige.a examples/c/device ;;
    c) core "" -Dbench=true ;;
    # Little optimized and with line numbers alone, they are compiled in half the
    # time. Warnings that the compiler gives only then are off.
    asan) core "" -Dlibrary=false -Doptimization=1 \
        -Dc_args='-g1 -Wno-format-truncation -Wno-maybe-uninitialized' \
        -Db_sanitize=address,undefined -Disal=disabled ;; # to test zlib
    tsan) core "--suite tsan" -Dlibrary=false -Doptimization=1 \
        -Dc_args='-g1 -Wno-format-truncation -Wno-maybe-uninitialized' \
        -Db_sanitize=thread -Dzstd=disabled -Dunwind=disabled \
        -Dsymbols=disabled ;; # a build without them
    elsewhere) scripts/test_elsewhere.sh "$PY" ;;
    quick) VESTIGE_QUICK=1 scripts/test_python.sh "$PY" quick ;;
    install) scripts/test_install.sh build/c "$prefix" ;;
    docs) .venv/docs/bin/python docs/build.py &&
        .venv/clients/bin/python -m pytest -q -rfEs tests/docs ;;
    clients) clients ;;
    counts) scripts/bench_counts.sh "$PY" ;;
    torch | hooks) scripts/test_python.sh "$PY" "$part" ;;
    python-*) scripts/test_python.sh "${part#python-}" \
        "$([ "${part#python-}" != "${SPLIT:-}" ] || echo rest)" ;;
    esac
}

# Prints lines of the log, cut to the width of a screen.
lines() {
    grep -E "$1" "$log" | cut -c 1-200 | awk '!seen[$0]++' | head -n "$2"
}

# Prints the names of failures: tests as Meson and pytest name them, files as the compiler does.
failures() {
    lines '(^|[^a-z]) (FAIL|TIMEOUT|ERROR) +[0-9.]+s|^(FAILED|ERROR) |: (fatal )?error: ' 12
}

# Prints the messages of failures: failed checks, sanitizers' reports, exceptions. Of long messages, the end
# is shown, too, because a traceback ends with the exception.
reasons() {
    if [ "$part" = lint ]; then
        lines '^[^ ]+:[0-9]+:' 40
        return
    fi
    lines '^(not ok|# |E  |rank [0-9])|^[A-Za-z_.]*(Error|Exception): |ERROR: |SUMMARY: |WARNING: Thread|Sanitizer:' 400 |
        awk '{ line[NR] = $0 }
            END { for (i = 1; i <= NR; i++) if (i <= 16 || i > NR - 16) print line[i] }'
}

mkdir -p build/test
rm -f "build/test/$part.ok" "build/test/$part.failed"
started=$SECONDS
TIMEFORMAT='%U %S'
# Prints how long the part took, and its CPU time.
took() {
    echo "$((SECONDS - started)) s, $(awk '{ print int($1 + $2) }' \
        "build/test/$part.cpu") of CPU"
}

logged() { (run) >"$log" 2>&1; }
if { time logged; } 2>"build/test/$part.cpu"; then
    touch "build/test/$part.ok"
    echo "ok    $part ($(took))"
else
    echo "FAIL  $part ($(took)), see $log:"
    failures >"build/test/$part.failed" || true
    cat "build/test/$part.failed"
    reasons | tee -a "build/test/$part.failed" || true
    [ -s "build/test/$part.failed" ] || tail -n 20 "$log" | cut -c 1-200
    exit 1
fi
