#!/bin/sh
# Runs the tests of the extension on the given builds of CPython (3.13-dbg, 3.13-debian, 3.11-static,
# 3.13+dev: proofs/builds.py explains them); missing builds are downloaded. proofs/results/builds.md has the
# results. Builds that are not available are reported as not run.
set -eu

here=
for build in "$@"; do
    environment=${build%+*}
    case $environment in
    *-static | *-shared) base=${environment%-*} ;;
    *) base=$environment ;;
    esac
    if ! scripts/find_python.sh "$base" >/dev/null 2>&1 && ! scripts/pythons.sh "$base"; then
        echo "not run: the tests on Python $build"
        continue
    fi
    QUICK="$environment" WERROR=1 ${MAKE:-make} --no-print-directory \
        ".venv/$environment/.installed" ".venv/$environment/.test-basics"
    here="$here $build"
done
# shellcheck disable=SC2086 # a list of builds
[ -z "$here" ] || python3 proofs/builds.py $here
