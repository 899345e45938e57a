#!/bin/sh
# Attaches 200 times to programs at difficult moments, on each Python or on the given ones, and as often to
# programs that listen; TIMES=20 is shorter. proofs/results/attach-races.md has the results, build/attach the
# logs.
set -eu

mkdir -p build/attach
failed=
# shellcheck disable=SC2046 # a list of versions
[ $# -ne 0 ] || set -- $(scripts/find_python.sh --all)
for version in "$@"; do
    ${MAKE:-make} --no-print-directory develop PY="$version"
    for listen in '' --listen; do
        log=build/attach/races-$version$listen.log
        echo "attaching to Python $version at difficult moments $listen, see $log"
        ".venv/$version/bin/python" proofs/attach_races.py --times "${TIMES:-200}" $listen \
            --results "${RESULTS:-proofs/results/attach-races.md}" >"$log" 2>&1 || failed="$failed $version$listen"
        tail -n 1 "$log"
    done
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
