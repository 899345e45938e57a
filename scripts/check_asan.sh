#!/bin/sh
# Runs tests with the extension under the address and undefined-behaviour sanitizers, on Python $1; further
# arguments go to pytest and replace the tests of the hooks. Objects come from malloc, so that a use after
# free is found. The sanitizers' reports of every process are in build/asan-reports/<version>.
set -eu

version=$1
shift
venv=$PWD/.venv/asan-$version
reports=$PWD/build/asan-reports/$version

if [ ! -e "$venv/.made" ]; then
    echo "making .venv/asan-$version"
    python=$(scripts/find_python.sh "$version")
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv"
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    .venv/tools/bin/python -c "$site" \
        >"$("$venv/bin/python" -c "$site")/vestige-tools.pth"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check \
        -r tests/requirements.txt
    touch "$venv/.made"
fi

# Stack variables are not checked, because greenlet copies the stack. The C tests check those of the core.
echo "building vestige for Python $version with sanitizers"
env -u MAKEFLAGS PATH="$PWD/.venv/tools/bin:$PATH" "$venv/bin/python" -m pip \
    install -qq --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall --config-settings=build-dir="build/asan-$version" \
    --config-settings=setup-args=-Db_lto=false \
    --config-settings=setup-args=-Db_lundef=false \
    --config-settings=setup-args=-Db_ndebug=false \
    --config-settings=setup-args=-Doptimization=1 \
    --config-settings=setup-args=-Dc_args='-g1 -fno-omit-frame-pointer --param=asan-stack=0' \
    --config-settings=setup-args=-Db_sanitize=address,undefined .

if [ $# -eq 0 ]; then
    cd tests/python
    set -- test_turbo_*.py test_engines.py test_differential.py test_soak.py \
        test_cpython_sample.py test_min_duration.py test_greenlets.py \
        test_tree_hostile.py test_memory_hooks.py test_memory_stacks.py
    cd ../..
    # The sanitizers have another malloc, in which no block grows in place.
    # shellcheck disable=SC2046 # a list of files
    set -- $(printf 'tests/python/%s ' "$@") --deselect \
        tests/python/test_memory_hooks.py::test_a_block_that_grows_in_place_is_freed_and_allocated
fi
rm -rf "$reports"
mkdir -p "$reports"
result=0
PATH="$venv/bin:$PATH" PYTHONMALLOC=malloc \
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS="detect_leaks=0:handle_segv=0:allocator_may_return_null=1:quarantine_size_mb=64:log_path=$reports/asan" \
    UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/ubsan" \
    "$venv/bin/python" -m pytest -q "$@" || result=$?

# The reports also list allocations that malloc refused, which is no error.
if grep -qsE 'ERROR: |runtime error: ' "$reports"/*; then
    echo "FAILED: the sanitizers found something, see $reports:"
    grep -hE '^SUMMARY: |runtime error: ' "$reports"/* | sort | uniq -c
    exit 1
fi
exit $result
