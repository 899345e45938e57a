#!/bin/sh
# Runs the benchmarks that compare vestige with other tools, on Python $PY, or on the installed ones of 3.11,
# 3.12 and 3.13. Arguments go to bench/run.py.
set -eu

for version in ${PY:-3.11 3.12 3.13}; do
    scripts/find_python.sh "$version" >/dev/null || continue
    ${MAKE:-make} --no-print-directory develop PY="$version"
    pip="./.venv/$version/bin/python -m pip install -qq --disable-pip-version-check"
    $pip viztracer==1.1.1
    $pip pyperformance==1.14.0 # its programs are what engines are measured on
    $pip memray==1.20.0 numpy || echo "memray could not be installed: left out"
    $pip pyarrow || echo "pyarrow could not be installed: left out"
    if [ "$version" = 3.11 ]; then
        $pip torch==2.13.0 numpy || echo "torch could not be installed: left out"
    fi
    scripts/bench_program.sh "$version"
    ".venv/$version/bin/python" bench/run.py "$@"
done
