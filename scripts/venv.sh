#!/bin/sh
# Makes the environment .venv/$1 and puts the build tools into it.
set -eu

python=$(scripts/find_python.sh "$1")
echo "making .venv/$1"
"$python" -m venv ".venv/$1"
".venv/$1/bin/pip" install -qq --disable-pip-version-check \
    'meson-python>=0.17' 'meson>=1.3' ninja
