#!/bin/bash
# Runs parts of the tests, all of them or those given, four at a time, since each
# waits now and then, and sums up. A part's output is in build/test/<part>.log.
set -euo pipefail

# Installs missing Pythons. $absent says why some are not available.
absent=
bring_missing() {
    local version reason
    for version in $(scripts/find_python.sh --missing); do
        reason=$(scripts/pythons.sh "$version" 2>&1 >/dev/null) ||
            absent="${absent}not run: all tests on Python $version because: ${reason#*cannot be had: }"$'\n'
    done
}

default=${PY:-$(scripts/find_python.sh --default)}
parts=$*
if [ -z "$parts" ]; then
    # Lint first, which costs least to mend. Then the parts that take longest, so that
    # both processors have work until the end: the two newest Pythons share what is the
    # same on every Python. Last the parts in C, which use both processors by themselves.
    bring_missing
    parts="lint"
    newest=2
    for version in $(scripts/find_python.sh --all | sort -rV); do
        [ "$newest" != 0 ] || parts="$parts python-$default hooks torch"
        newest=$((newest - 1))
        [ "$version" = "$default" ] || parts="$parts python-$version"
    done
    [ "$newest" -lt 0 ] || parts="$parts python-$default hooks torch"
    # To build one takes minutes: the newest that is here. Make check NAME=slow takes each.
    version=$(scripts/find_python.sh --free-threaded | tail -n 1)
    parts="$parts ${version:+python-$version}"
    [ -n "$version" ] ||
        absent="${absent}not run: the tests of threads without the GIL because: no such Python is here, scripts/pythons.sh 3.14t builds one"$'\n'
    parts="$parts clients asan c tsan docs install elsewhere counts layers"
fi

# The default Python's is built as its wheel is, the others on a core that is
# compiled once; so is all that `make quick` takes. The newest share what is the
# same on every Python.
all=$(scripts/find_python.sh --all)
case $parts in
*quick*) quick=$default ;;
*) quick=$({ echo "$all" && scripts/find_python.sh --free-threaded; } | grep -vxF "$default" | tr '\n' ' ' || true) ;;
esac
TURNS=$(echo "$all" | tail -n 2 | xargs)
export TURNS

rm -rf build/test
mkdir -p build/test
started=$(date +%s)
# shellcheck disable=SC2046,SC2086 # a list of parts
${MAKE:-make} --no-print-directory --keep-going -j4 PY="$default" \
    QUICK="$quick" SPLIT="$default" \
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
# shellcheck disable=SC2046,SC2086 # lists of parts
if [ -n "$failed" ] && unsteady=$(PY=$default scripts/test_again.sh $failed); then
    AGAIN=$(cat $(printf 'build/test/%s.log ' $failed) | grep -cE '^(FAILED|ERROR) ')
    export AGAIN
    echo "unsteady, failed beside other tests and passed alone:"
    printf '%s\n' "$unsteady" | sed 's/^/  /'
    failed=
fi
printf '%s' "$absent"
scripts/test_sums.sh build/test/*.log
if [ -n "$failed" ]; then
    echo "FAILED after $seconds s:$failed"
    exit 1
fi
echo "all passed in $seconds s: $parts"
