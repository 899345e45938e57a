#!/bin/sh
# Makes the environment .venv/$1, which has pip and the build tools from
# .venv/tools.
set -eu

python=$(scripts/find_python.sh "$1")
echo "making .venv/$1"
rm -rf ".venv/$1"
"$python" -m venv --without-pip ".venv/$1"
site='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/tools/bin/python -c "$site" \
    >"$(".venv/$1/bin/python" -c "$site")/vestige-tools.pth"
