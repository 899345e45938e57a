#!/bin/sh
# Runs our tests of torch with another version of it than they usually have:
# check_torch.sh PYTHON VERSION [test or option of pytest ...]. torch is up to 5 GB
# with the libraries it comes with, so it is kept outside of the tree, in
# ~/.cache/vestige, on top of what is installed for that Python. TORCH_HOME names
# an environment that is there already.
set -eu

python=$PWD/.venv/$1/bin/python
version=$2
home=${TORCH_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/vestige/torch-$version-py$1}
shift 2
if [ ! -x "$home/bin/python" ]; then
    echo "making $home"
    "$python" -m venv --without-pip "$home"
fi
# The command, as the tests find it.
cat >"$home/bin/vestige" <<END
#!$home/bin/python
import sys
from vestige.cli import main
sys.exit(main())
END
chmod +x "$home/bin/vestige"
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -c "$site" >"$("$home/bin/python" -c "$site")/vestige-base.pth"
found=$("$home/bin/python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
case $found in
"$version" | "$version"+*) ;;
*)
    echo "installing torch $version"
    "$python" -m pip --python "$home/bin/python" install -qq \
        --disable-pip-version-check --no-compile "torch==$version"
    ;;
esac
"$home/bin/python" -c 'import torch, vestige; print("torch", torch.__version__)'
# Builds the recorder of torch's operators once, into this user's cache.
[ $# -gt 0 ] || set -- tests/python/test_torch_*.py
exec "$home/bin/python" -m pytest -q -p no:cacheprovider "$@"
