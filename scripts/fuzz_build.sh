#!/bin/sh
# Builds the libFuzzer targets in build/fuzz, with clang and its sanitizers.
set -eu
unset MAKEFLAGS # ninja would take make's jobs for its own

build=build/fuzz
for compiler in ${FUZZ_CC:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
    command -v "$compiler" >/dev/null && break
done
if ! command -v "$compiler" >/dev/null; then
    echo "please install clang and its runtime (clang, libclang-rt-dev)" >&2
    exit 1
fi

[ -e "$build/build.ninja" ] ||
    CC=$compiler meson setup "$build" -Dfuzz=true -Dlibrary=false \
        -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
        -Db_lundef=false -Disal=disabled \
        -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined'
# shellcheck disable=SC2046 # a name a target
ninja -C "$build" $(printf 'fuzz/fuzz_%s ' "$@")
