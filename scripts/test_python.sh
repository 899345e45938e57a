#!/bin/sh
# Runs the Python tests on Python $1. What is the same on every Python runs on
# the oldest and the newest.
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
python -m vestige.torch_build # where torch is: tests do not wait for it
all=$(scripts/find_python.sh --all)
case $1 in
"$(echo "$all" | head -n 1)" | "$(echo "$all" | tail -n 1)") marked= ;;
*) marked="not any_python" ;;
esac
pytest -q -m "$marked" tests/python
