#!/bin/sh
# Starts and stops the profiler 100,000 times with each engine of each installed Python (including those
# without the GIL), or of the given ones; the engines of a Python run in parallel. proofs/results/soak.md has
# the results, build/soak the logs.
set -eu

mkdir -p build/soak
failed=
# shellcheck disable=SC2046 # a list of versions
[ $# -ne 0 ] || set -- $(scripts/find_python.sh --all && scripts/find_python.sh --free-threaded)
for version in "$@"; do
    ${MAKE:-make} --no-print-directory develop PY="$version"
    python=.venv/$version/bin/python
    "$python" -m pip install -qq --disable-pip-version-check greenlet || true
    running=
    for engine in $("$python" -c 'from vestige import _core
choices = _core.engine_choices() # each with the reason why it cannot be used
print(*[name for name in _core.engines if choices[name] is None])'); do
        log=build/soak/$version-$engine.log
        echo "soak of $engine on Python $version, see $log"
        "$python" proofs/soak.py --engine "$engine" --starts "${STARTS:-100000}" \
            --results "${RESULTS:-proofs/results/soak.md}" >"$log" 2>&1 &
        running="$running $engine:$!"
    done
    for one in $running; do
        wait "${one#*:}" || failed="$failed $version/${one%:*}"
        tail -n 1 "build/soak/$version-${one%:*}.log"
    done
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
