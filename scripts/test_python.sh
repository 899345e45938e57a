#!/bin/sh
# Runs the Python tests on Python $1; with a second argument, "torch" or "rest",
# those about torch, or all others; after "only", the tests that follow. What is the same on every Python runs on one
# alone: the two newest take turns. What is slow runs on the newer of two Pythons that have the same engine, where
# both are here: 3.10 and 3.11, 3.12 and 3.13, 3.14 and 3.15; VESTIGE_SLOW=all runs it on each. What needs DuckDB is
# for the part "clients".
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
export OMP_NUM_THREADS=1 # other parts run meanwhile: torch's threads would spin
VESTIGE_TURNS=${TURNS-$(scripts/find_python.sh --all | tail -n 2 | tr '\n' ' ')}
export VESTIGE_TURNS
minor=${1#3.}
minor=${minor%t}
if [ $((minor % 2)) = 0 ] && scripts/find_python.sh "3.$((minor + 1))" >/dev/null 2>&1; then
    export VESTIGE_SLOW="${VESTIGE_SLOW:-newer}"
fi

tests=tests/python
ignored=
torch=$(ls tests/python/test_*torch*.py tests/python/test_execution_trace.py \
    tests/python/test_memory_categories.py)
# shellcheck disable=SC2086 # lists of files
case ${2:-} in
torch) tests=$torch ;;
rest) ignored=$(printf -- '--ignore=%s ' $torch) ;;
only)
    shift 2
    tests=$*
    ;;
esac
# shellcheck disable=SC2086 # lists of files
pytest -q -rfEs -m "not sql" $ignored $tests
