#!/bin/sh
# Attaches to a web server and detaches from it 2,000 times on each Python, or on the given ones, with and
# without a JIT where there is one; TIMES=100 is shorter. proofs/results/attach.md has the results,
# build/attach the logs.
set -eu

mkdir -p build/attach
failed=
# shellcheck disable=SC2046 # a list of versions
[ $# -ne 0 ] || set -- $(scripts/find_python.sh --all)
for version in "$@"; do
    ${MAKE:-make} --no-print-directory develop PY="$version"
    python=.venv/$version/bin/python
    jits=0
    "$python" -c 'import sys; raise SystemExit(not sys._jit.is_available())' 2>/dev/null && jits='0 1'
    for jit in $jits; do
        log=build/attach/$version-$jit.log
        echo "attaching to Python $version, see $log"
        PYTHON_JIT=$jit "$python" proofs/attach.py --times "${TIMES:-2000}" \
            --results "${RESULTS:-proofs/results/attach.md}" >"$log" 2>&1 || failed="$failed $version"
        tail -n 1 "$log"
    done
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
