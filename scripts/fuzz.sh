#!/bin/sh
# Runs each libFuzzer target for so many seconds, from the corpus. What it finds
# interesting goes to build/fuzz/found/<target>, an input that breaks something
# to build/fuzz/<target>-crash-... and the like.
set -eu
unset MAKEFLAGS # ninja would take make's jobs for its own

seconds=${1:-60}
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
targets='reader matcher export tables view pack memory graph'
ninja -C "$build" $(printf 'fuzz/fuzz_%s ' $targets)

export ASAN_OPTIONS=quarantine_size_mb=32 # freed memory counts to the limit
for target in ${TARGETS:-$targets}; do
    mkdir -p "$build/found/$target" "fuzz/corpus/$target"
    case $target in
    reader | matcher) seeds= ;;
    *) seeds=fuzz/corpus/trace ;; # their input is a trace (fuzz/trace_input.h)
    esac
    "$build/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=32768 \
        -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=64 -print_final_stats=1 \
        -artifact_prefix="$build/$target-" \
        "$build/found/$target" "fuzz/corpus/$target" $seeds
done
