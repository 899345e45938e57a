#!/bin/sh
# Builds a wheel for Python $1 and installs it. The build directory stays, so
# only what changed is compiled again. If WERROR is set, warnings are errors from
# then on. For the versions in QUICK the core is taken from build/c, where the
# tests in C have it, and little is optimized: that takes a third of the time, and
# .venv/$1/.quick marks such a build.
set -eu

build=build/$1
case " ${QUICK:-} " in
*" $1 "*)
    quick=1
    build=build/quick-$1
    echo "building vestige for Python $1 on the core of build/c"
    ;;
*)
    quick=
    echo "building vestige for Python $1"
    ;;
esac
# The asserts of a debug build's headers are part of what it checks.
case $1 in *-dbg) asserts=1 ;; *) asserts= ;; esac
env -u MAKEFLAGS PATH="$PWD/.venv/tools/bin:$PATH" ".venv/$1/bin/python" -m pip \
    install -qq --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall --config-settings=build-dir="$build" \
    ${WERROR:+--config-settings=setup-args=-Dwerror=true} \
    ${asserts:+--config-settings=setup-args=-Db_ndebug=false} \
    ${quick:+--config-settings=setup-args=-Dcore="$PWD/build/c/src"} \
    ${quick:+--config-settings=setup-args=-Db_lto=false} \
    ${quick:+--config-settings=setup-args=-Doptimization=1} \
    ${quick:+--config-settings=setup-args=-Dc_args=-Wno-maybe-uninitialized} .
[ -z "$quick" ] || touch ".venv/$1/.quick"
[ -n "$quick" ] || rm -f ".venv/$1/.quick"
# If torch is installed, builds the recorder of torch's operators now.
".venv/$1/bin/python" -m vestige.torch.build
