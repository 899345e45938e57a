#!/bin/sh
# Runs proofs/free_threads.py under the thread sanitizer for $1 seconds (default: 600): the sanitizer watches
# both the extension and the interpreter (3.14t-tsan, which is built if it is missing). Races are reported in
# build/tsan-reports; proofs/tsan.supp lists races that are not vestige's.
set -eu

version=3.14t-tsan
seconds=${1:-600}
venv=$PWD/.venv/$version
reports=$PWD/build/tsan-reports

if ! scripts/find_python.sh "$version" >/dev/null 2>&1 && ! scripts/pythons.sh "$version"; then
    echo "not run: the threads of a Python without the GIL under the thread sanitizer"
    exit 0
fi
export TSAN_OPTIONS=report_bugs=0 # while it is built
[ -e "$venv/bin/python" ] || scripts/venv.sh "$version"
echo "building vestige for Python $version"
# Calls of the C library that the sanitizer stands in front of are the library's own there.
env -u MAKEFLAGS PATH="$PWD/.venv/tools/bin:$PATH" "$venv/bin/python" -m pip \
    install -qq --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall --config-settings=build-dir="build/$version" \
    --config-settings=setup-args=-Db_lto=false \
    --config-settings=setup-args=-Db_lundef=false \
    --config-settings=setup-args=-Doptimization=1 \
    --config-settings=setup-args=-Dc_args='-g1 -fno-omit-frame-pointer' \
    --config-settings=setup-args=-Db_sanitize=thread .

rm -rf "$reports"
mkdir -p "$reports"
result=0
TSAN_OPTIONS="suppressions=$PWD/proofs/tsan.supp:log_path=$reports/tsan:halt_on_error=0:exitcode=0:history_size=7" \
    "$venv/bin/python" proofs/free_threads.py --seconds "$seconds" || result=$?
if [ -n "$(ls "$reports")" ]; then
    echo "FAILED: the thread sanitizer found something, see $reports:"
    grep -h '^SUMMARY: ' "$reports"/* | sort | uniq -c
    exit 1
fi
exit $result
