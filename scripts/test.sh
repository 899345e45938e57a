#!/bin/sh
# Runs all parts of the tests, three at a time, since each waits now and then,
# and sums up. A part's output is in build/test/<part>.log.
set -eu

default=$(scripts/find_python.sh --default)
# What costs least to mend first; then what has the longest way to go, so that both
# processors have work until the end; the parts in C, which use both by themselves,
# after that.
parts="lint torch clients docs"
for version in $(scripts/find_python.sh --all | sort -rV); do
    parts="$parts python-$version"
done
parts="$parts asan c tsan install layers"

# The default Python's is built as its wheel is, the others on a core that is
# compiled once.
quick=$(scripts/find_python.sh --all | grep -vxF "$default" | tr '\n' ' ' || true)

rm -rf build/test
mkdir -p build/test
started=$(date +%s)
# shellcheck disable=SC2046,SC2086 # a list of parts
${MAKE:-make} --no-print-directory --keep-going -j3 PY="$default" \
    QUICK="$quick" TORCH_APART="$default" \
    $(printf 'test-%s ' $parts) 2>build/test/make.log || true

failed=
show=
for part in $parts; do
    [ -e "build/test/$part.ok" ] || failed="$failed $part"
    [ -e "build/test/$part.log" ] || show=build/test/make.log # never began
done
seconds=$(($(date +%s) - started))
if [ -n "$failed" ]; then
    [ -z "$show" ] || tail -n 20 "$show"
    for part in $failed; do
        # Names first, and the last words of what failed.
        awk -v part="$part" '{ line[NR] = $0 }
            END { for (i = 1; i <= NR; i++) if (i <= 6 || i > NR - 6) print part ": " line[i] }' \
            "build/test/$part.failed" 2>/dev/null || true
    done
    echo "FAILED after $seconds s:$failed"
    exit 1
fi
echo "all passed in $seconds s: $parts"
# What was not run and why, as pytest tells it: SKIPPED [2] file:line: reason.
sed -nE 's/^SKIPPED \[([0-9]+)\] [^ ]+: /\1 /p' build/test/*.log | awk '
    { n = $1; sub(/^[0-9]+ /, ""); of[$0] += n; all += n }
    END {
        if (all) printf "not run: %d tests\n", all; fflush()
        for (reason in of) printf "  %4d because: %s\n", of[reason], reason | "sort -rn"
    }'
# pytest's closing lines and Meson's sums, added up.
cat build/test/*.log | awk '
    / in [0-9.]+s/ { for (i = 2; i <= NF; i++) n[$i] += $(i - 1) }
    /^Ok:/ { passed += $2 }
    /^Skipped:/ { skipped += $2 }
    END {
        passed += n["passed,"] + n["passed"]
        skipped += n["skipped,"] + n["skipped"]
        printf "%d passed, 0 failed, %d skipped\n", passed, skipped
    }'
