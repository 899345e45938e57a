#!/bin/sh
# Makes the environment .venv/$1, which has pip and the build tools from
# .venv/tools. A Python that is not here is brought, if it can be had.
set -eu

case $1 in
*-static | *-shared) base=${1%-*} way=${1##*-} ;;
*) base=$1 way= ;;
esac
python=$(scripts/find_python.sh "$base" 2>/dev/null) || {
    scripts/pythons.sh "$base"
    python=$(scripts/find_python.sh "$base")
}
echo "making .venv/$1"
rm -rf ".venv/$1"
"$python" -m venv --without-pip ".venv/$1"
[ -z "$way" ] || "$python" scripts/link_python.py "$way" ".venv/$1"
site='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/tools/bin/python -c "$site" \
    >"$(".venv/$1/bin/python" -c "$site")/vestige-tools.pth"
