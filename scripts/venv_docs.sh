#!/bin/sh
# Makes the environment .venv/docs with the tools that build the site, on top of the packages installed for
# Python $1.
set -eu

echo "making .venv/docs"
python=$PWD/.venv/$1/bin/python
rm -rf .venv/docs
"$python" -m venv --without-pip .venv/docs
"$python" -m pip --python .venv/docs/bin/python install -qq \
    --disable-pip-version-check --no-deps --no-compile -r docs/requirements.txt
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -c "$site" >"$(.venv/docs/bin/python -c "$site")/vestige-base.pth"
