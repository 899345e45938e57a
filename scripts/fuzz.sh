#!/bin/sh
# Runs each libFuzzer target, or those in TARGETS, for $1 seconds, starting from the corpus. New inputs go to
# build/fuzz/found/<target>, inputs that break something to build/fuzz/<target>-crash-… and similar files.
set -eu

seconds=${1:-60}
build=build/fuzz
targets=${TARGETS:-reader matcher export graph limit memory pack tables view}
# shellcheck disable=SC2086 # a name a target
scripts/fuzz_build.sh $targets

export ASAN_OPTIONS=quarantine_size_mb=32 # freed memory counts to the limit
for target in $targets; do
    mkdir -p "$build/found/$target"
    corpora=
    for corpus in "$target" trace; do
        case $corpus-$target in
        trace-reader | trace-matcher) ;; # their input is no trace of that form
        *) [ ! -d "fuzz/corpus/$corpus" ] || corpora="$corpora fuzz/corpus/$corpus" ;;
        esac
    done
    # shellcheck disable=SC2086
    "$build/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=32768 \
        -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=64 -print_final_stats=1 \
        -artifact_prefix="$build/$target-" "$build/found/$target" $corpora
done
