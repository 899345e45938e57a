#!/bin/bash
# Runs parts of the tests, all of them or those given, three at a time, since each
# waits now and then, and sums up. A part's output is in build/test/<part>.log.
set -euo pipefail

default=${PY:-$(scripts/find_python.sh --default)}
parts=$*
if [ -z "$parts" ]; then
    # What costs least to mend first; then what has the longest way to go, so that
    # both processors have work until the end; the parts in C, which use both by
    # themselves, after that.
    parts="lint torch clients docs"
    for version in $(scripts/find_python.sh --all | sort -rV); do
        parts="$parts python-$version"
    done
    parts="$parts asan c tsan install elsewhere layers"
fi

# The default Python's is built as its wheel is, the others on a core that is
# compiled once; so is all that `make quick` takes.
case $parts in
*quick*) quick=$default ;;
*) quick=$(scripts/find_python.sh --all | grep -vxF "$default" | tr '\n' ' ' || true) ;;
esac

rm -rf build/test
mkdir -p build/test
started=$(date +%s)
# shellcheck disable=SC2046,SC2086 # a list of parts
${MAKE:-make} --no-print-directory --keep-going -j3 PY="$default" \
    QUICK="$quick" TORCH_APART="$default" \
    $(printf 'test-%s ' $parts) 2>build/test/make.log || true

failed=
began=all
for part in $parts; do
    [ -e "build/test/$part.ok" ] || failed="$failed $part"
    [ -e "build/test/$part.log" ] || began=
done
seconds=$(($(date +%s) - started))
if [ -n "$failed" ]; then
    [ -n "$began" ] || tail -n 20 build/test/make.log
    for part in $failed; do
        # Names first, and the last words of what failed.
        awk -v part="$part" '{ line[NR] = $0 }
            END { for (i = 1; i <= NR; i++) if (i <= 6 || i > NR - 6) print part ": " line[i] }' \
            "build/test/$part.failed" 2>/dev/null || true
    done
fi
scripts/test_sums.sh build/test/*.log
if [ -n "$failed" ]; then
    echo "FAILED after $seconds s:$failed"
    exit 1
fi
echo "all passed in $seconds s: $parts"
