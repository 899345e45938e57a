#!/bin/bash
# Counts the instructions of vestige on Python $1 with callgrind, and compares them with the committed counts,
# or with those of commit BASE, which is built in build/base. Fails if a count is more than 3 % higher.
set -euo pipefail

command -v valgrind >/dev/null || {
    echo "SKIPPED [1] bench/counts.py:1: valgrind is not installed, which counts instructions"
    exit
}
# The build for quick tests is optimized less.
[ ! -e ".venv/$1/.quick" ] || QUICK='' scripts/install.sh "$1"
python=$PWD/.venv/$1/bin/python
if [ -z "${BASE:-}" ]; then
    exec "$python" bench/counts.py "$python" "${@:2}"
fi
if [ ! -e build/base ]; then
    git worktree prune
    git worktree add --quiet --detach build/base "$BASE"
fi
git -C build/base checkout --quiet --detach "$(git rev-parse "$BASE")"
${MAKE:-make} --no-print-directory -C build/base develop PY="$1"
exec "$python" bench/counts.py "$python" --against "$PWD/build/base/.venv/$1/bin/python" "${@:2}"
