#!/bin/sh
# Makes .venv/wheels with the tools that make wheels for other machines.
set -eu

echo "making .venv/wheels"
rm -rf .venv/wheels
"$(scripts/find_python.sh --tools)" -m venv .venv/wheels
.venv/wheels/bin/python -m pip install -qq --disable-pip-version-check -r scripts/wheels/requirements.txt
