#!/bin/sh
# Runs the Python tests on Python $1. What is the same on every Python runs on
# the newest alone.
set -eu

PATH="$PWD/.venv/$1/bin:$PATH"
export OMP_NUM_THREADS=1 # other parts run meanwhile: torch's threads would spin
python -m vestige.torch_build # where torch is: tests do not wait for it
newest=$(scripts/find_python.sh --all | tail -n 1)
[ "$1" = "$newest" ] && marked= || marked="not any_python"
pytest -q -m "$marked" tests/python
