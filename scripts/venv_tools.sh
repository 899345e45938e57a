#!/bin/sh
# Makes .venv/tools: pip and the build tools, all of them plain Python, which the
# environments of every version look into. The newest pip knows them all.
set -eu

python=$(scripts/find_python.sh --tools)
echo "making .venv/tools"
rm -rf .venv/tools
"$python" -m venv .venv/tools
.venv/tools/bin/python -m pip install -qq --disable-pip-version-check --upgrade pip \
    'meson-python>=0.17' 'meson>=1.3' ninja
