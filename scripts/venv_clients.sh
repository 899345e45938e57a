#!/bin/sh
# Makes the environment .venv/clients: programs that read our traces, on top of
# what is installed for Python $1.
set -eu

echo "making .venv/clients"
python=$PWD/.venv/$1/bin/python
rm -rf .venv/clients
"$python" -m venv --without-pip .venv/clients
"$python" -m pip --python .venv/clients/bin/python install -qq \
    --disable-pip-version-check --no-deps --no-compile \
    -r tests/clients/requirements.txt
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -c "$site" >"$(.venv/clients/bin/python -c "$site")/vestige-base.pth"
