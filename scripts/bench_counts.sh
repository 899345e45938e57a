#!/bin/bash
# Counts the instructions of vestige on Python $1 by callgrind, beside the figures that are
# committed, or beside those of commit BASE, which is built in build/base. Fails where
# there are more than 3 % more.
set -euo pipefail

command -v valgrind >/dev/null || {
    echo "SKIPPED [1] bench/counts.py:1: valgrind is not installed, which counts instructions"
    exit
}
# What the quick tests take is optimized less.
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
