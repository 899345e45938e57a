#!/bin/bash
# Runs the tests that failed in the given parts once more, each part's by themselves,
# now that nothing runs beside them. Prints the names of those that pass this time, one
# a line behind their part. CPython's own tests are run so, too (`--rerun`): of ten
# thousand tests, one meets a moment in which the machine stood still. A mistake that
# shows itself each time still fails. Fails itself if a test fails again, if more than
# three failed before, or if a part is none of pytest's: the tests in C get one try.
set -euo pipefail

MOST=3

# The failed tests of a log, without their parameters.
failed_tests() {
    sed -nE 's/^(FAILED|ERROR) ([^ []+).*/\2/p' "$1" | sort -u
}

again() {
    local part=$1
    shift
    case $part in
    python-*) scripts/test_python.sh "${part#python-}" only "$@" ;;
    torch | hooks) scripts/test_python.sh "$PY" only "$@" ;;
    clients | docs) .venv/clients/bin/python -m pytest -q -rfEs "$@" ;;
    *) return 1 ;;
    esac
}

all=0
for part; do
    # Where pytest did not come to its end, nobody knows what else would fail.
    ! grep -qE 'Interrupted|INTERNALERROR|stopping after' "build/test/$part.log" || exit 1
    count=$(failed_tests "build/test/$part.log" | wc -l)
    all=$((all + count))
    [ "$count" -gt 0 ] || exit 1
done
[ "$all" -le "$MOST" ] || exit 1
for part; do
    mapfile -t tests < <(failed_tests "build/test/$part.log")
    again "$part" "${tests[@]}" >"build/test/$part.again" 2>&1 || exit 1
    printf "$part: %s\n" "${tests[@]}"
done
