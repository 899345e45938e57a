#!/bin/bash
# Installs the wheels in dist/ as a user would: each of them on this machine ("here"), and
# those for two Pythons in a small Debian 11 and a small Debian 13 that have no compiler,
# where the tests in Python run, too. What came out is in build/try/<name>.log;
# proofs/results/wheels.md keeps it. TRY_ONLY=1 leaves the tests out. Where a chroot
# cannot be had, or there is no permission to enter it, one line says so.
#
#   check.sh                         all three, and all tests
#   check.sh here
#   check.sh debian11 tests/python/test_gc.py
set -euo pipefail
unset MAKEFLAGS

not_run() {
    echo "wheels, $name: not run: $1"
}

# Runs a command in root $1 as user 1000, whose home is folder $2. The mounts are seen by
# this command alone.
enter() {
    local root=$1 home=$2
    shift 2
    # shellcheck disable=SC2016 # expanded by that shell
    unshare --mount --propagation private sh -euc '
        root=$1 home=$2
        shift 2
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --bind "$home" "$root/home/user"
        mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
        exec chroot --userspec=1000:1000 "$root" /usr/bin/env -i HOME=/home/user USER=user LC_ALL=C.UTF-8 \
            PATH=/usr/local/bin:/usr/bin:/bin TRY_ONLY='"'${TRY_ONLY:-}'"' VESTIGE_QUICK='"'${VESTIGE_QUICK:-}'"' "$@"' sh "$root" "$home" "$@"
}

# Brings packages $3... for Python $1 into folder $2, as this machine may have another.
download() {
    local version=$1 folder=$2 machine
    machine=$(uname -m)
    shift 2
    .venv/tools/bin/python -m pip download -qq --disable-pip-version-check --only-binary :all: --python-version "$version" \
        --implementation cp --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
        --platform "manylinux2014_$machine" -d "$folder" "$@"
}

# Brings the torch that the tests run with, if there is one for Python $1.
bring_torch() {
    local wanted
    wanted=$(sed -n "s/; python_version == \"$1\"\$//p" tests/requirements-torch.txt)
    [ -z "$wanted" ] || download "$1" "$2" "$wanted"
}

try() {
    local made home=$PWD/build/try/$name python version tag log=build/try/$name.log
    [ "$(id -u)" = 0 ] || { not_run "only root may enter a chroot" && return; }
    mkdir -p build/try
    made=$(scripts/wheels/chroot.sh "$name" 2>"$log") || { not_run "$(cat "$log")" && return; }
    python=$(cat "$made/python")
    version=${python##*python}
    tag=cp${version/./}
    compgen -G "dist/vestige-*-$tag-$tag-manylinux*.whl" >/dev/null || {
        echo "wheels, $name: there is no wheel for Python $version in dist; \`make wheels PYTHONS=$version\` makes it" >&2
        return 1
    }
    rm -rf "$home"
    mkdir -p "$home/wheels"
    cp dist/vestige-*-"$tag-$tag"-manylinux*.whl "$home/wheels"
    download "$version" "$home/wheels" -r tests/requirements.txt
    bring_torch "$version" "$home/wheels"
    git ls-files -z | xargs -0 cp --parents -t "$home"
    cp scripts/wheels/try.sh "$home"
    chown -R 1000:1000 "$home"
    enter "$made/root" "$home" sh /home/user/try.sh "$python" "$@" >"$log" 2>&1 || {
        tail -n 40 "$log"
        return 1
    }
    grep -E '^(vestige|native|libraries|it records|torch|[0-9]+ passed)' "$log" | sed "s/^/$name: /"
}

# Every wheel for this machine whose Python is here.
try_here() {
    local wheel version python home log=$PWD/build/try/here.log failed=
    mkdir -p build/try
    : >"$log"
    for wheel in dist/vestige-*-manylinux*"$(uname -m)".whl; do
        version=${wheel#*-cp3}
        version=3.${version%%-*}
        python=$(scripts/find_python.sh "$version" 2>/dev/null) || { echo "here: there is no Python $version" && continue; }
        home=$PWD/build/try/here-$version
        rm -rf "$home"
        mkdir -p "$home/wheels"
        cp "$wheel" "$home/wheels"
        cp -r examples "$home"
        env -i HOME="$home" LC_ALL=C.UTF-8 PATH=/usr/bin:/bin TRY_ONLY=1 PIP_OF="$PWD/.venv/tools/bin/python" \
            sh scripts/wheels/try.sh "$python" >"$log.new" 2>&1 || failed=1
        cat "$log.new" >>"$log"
        grep -E '^(vestige|native)' "$log.new" | sed 's/^/here: /'
        [ -z "$failed" ] || tail -n 20 "$log.new"
    done
    rm -f "$log.new"
    [ -z "$failed" ]
}

names=${1:-here debian11 debian13}
[ $# -eq 0 ] || shift
failed=
for name in $names; do
    case $name in
    here) try_here || failed=1 ;;
    *) try "$@" || failed=1 ;;
    esac
done
[ -z "$failed" ]
