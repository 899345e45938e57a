#!/bin/sh
# Runs the Python tests on Python $1; with a second argument, "torch", "hooks" or "rest", the tests about torch, those about
# hooks (which wait a lot), or all others; with "quick", all but torch's; after "only", the tests that follow. What is the same on every Python runs on one
# alone: the two newest take turns. What is slow runs on 3.11, the last whose frames turbo evaluates, and every second
# such test on the newest that is here, too; VESTIGE_SLOW=all runs all on each. What needs DuckDB is for the part "clients".
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
export OMP_NUM_THREADS=1 # other parts run meanwhile: torch's threads would spin
VESTIGE_TURNS=${TURNS-$(scripts/find_python.sh --all | tail -n 2 | xargs)}
export VESTIGE_TURNS
case ${1%t} in
3.11) ;;
"${VESTIGE_TURNS##* }") export VESTIGE_SLOW="${VESTIGE_SLOW:-half}" ;;
*) export VESTIGE_SLOW="${VESTIGE_SLOW:-newer}" ;;
esac

tests=tests/python
ignored=
torch=$(ls tests/python/test_*torch*.py tests/python/test_execution_trace.py \
    tests/python/test_memory_categories.py)
hooks=$(printf '%s\n' tests/python/test_*.py | grep -E '/test_(attach|gil|memory|thread|traceback|tree|turbo)' | grep -vxF "$torch")
# Without the GIL, what touches hooks, threads, memory, collections and children; VESTIGE_SLOW=all runs all there, too.
case $1:${VESTIGE_SLOW:-} in
*t:all) ;;
*t:*)
    export VESTIGE_QUICK=1
    tests=$(printf 'tests/python/test_%s.py ' annotations bounded children children_forks embedded engines exceptions flight \
        forked free_threads gc gil_waits memory_api memory_hooks memory_stacks min_duration profile_api scope tasks threads \
        traceback traceback_native tree_exceptions tree_functions tree_generators tree_native)
    ;;
esac
# shellcheck disable=SC2086 # lists of files
case ${2:-} in
torch) tests=$torch ;;
hooks) tests=$hooks ;;
quick) ignored=$(printf -- '--ignore=%s ' $torch) ;;
rest) ignored=$(printf -- '--ignore=%s ' $torch $hooks) ;;
only)
    shift 2
    tests=$*
    ;;
esac
# shellcheck disable=SC2086 # lists of files
pytest -q -rfEs -m "not sql" $ignored $tests
