#!/bin/sh
# Starts and stops the profiler 100,000 times with each engine of each Python, or
# of those given as arguments; proofs/results/soak.md says what came out.
set -eu

failed=
for version in ${*:-$(scripts/find_python.sh --all)}; do
    ${MAKE:-make} --no-print-directory develop PY="$version"
    python=.venv/$version/bin/python
    "$python" -m pip install -qq --disable-pip-version-check greenlet || true
    for engine in $("$python" -c 'import vestige; print(*vestige._core.engines)'); do
        echo "soak of $engine on Python $version"
        "$python" proofs/soak.py --engine "$engine" --starts "${STARTS:-100000}" \
            --results proofs/results/soak.md || failed="$failed $version/$engine"
    done
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
