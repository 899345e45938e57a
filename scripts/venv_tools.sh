#!/bin/sh
# Makes .venv/tools: pip and the build tools, all of them plain Python, which the
# environments of every version look into. The newest Python's pip knows them all.
set -eu

newest=$(scripts/find_python.sh --all | tail -n 1)
python=$(scripts/find_python.sh "$newest")
echo "making .venv/tools"
rm -rf .venv/tools
"$python" -m venv .venv/tools
.venv/tools/bin/python -m pip install -qq --disable-pip-version-check \
    'meson-python>=0.17' 'meson>=1.3' ninja tomli # which meson-python takes on 3.10
