#!/bin/sh
# Builds a wheel for Python $1 and installs it. The build directory stays, so
# only what changed is compiled again. WERROR is set where a warning is an error;
# left out, it is as it was.
set -eu

echo "building vestige for Python $1"
env -u MAKEFLAGS PATH="$PWD/.venv/$1/bin:$PATH" ".venv/$1/bin/pip" install -qq \
    --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall --config-settings=build-dir="build/$1" \
    ${WERROR:+--config-settings=setup-args=-Dwerror=true} .
# Where torch is installed, what records its operators is built right away.
".venv/$1/bin/python" -m vestige.torch_build
