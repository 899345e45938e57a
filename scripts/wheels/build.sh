#!/bin/bash
# Builds wheels into dist/, for the Pythons given or for all that are here, and the
# sdist. They run wherever the C library is that of manylinux_2_28 or newer. Build
# directories stay, so only what changed is compiled again. What cannot be made is
# named with the reason, and the exit code is then 1.
#
#   build.sh [3.12 ...]
set -euo pipefail
unset MAKEFLAGS

pythons=${*:-$(scripts/find_python.sh --all)}
export PATH="$PWD/.venv/wheels/bin:$PWD/.venv/tools/bin:$PATH"
PLAT=manylinux_2_28_$(uname -m)
mkdir -p build/wheels dist
made=$(scripts/wheels_root.sh) || {
    echo "no wheels for older systems: what they are built with cannot be had" >&2
    exit 1
}
root=$made/root
triple=$(gcc -print-multiarch)
export PLAT OWNERS=$made/owners CXX=$made/c++ PYTHON=.venv/tools/bin/python

# The headers of a distribution's own Python may include others that lie beside them,
# which the older root has not.
has_headers() {
    local folder
    folder=$(".venv/$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    echo '#include <Python.h>' | "$made/cc" -E -I"$folder" -o /dev/null - 2>/dev/null
}

build() {
    local version=$1 raw=build/wheels/raw-$1 option settings=()
    for option in -Dwerror=true -Dzstd=enabled -Disal=enabled -Dunwind=enabled -Dsymbols=enabled -Dunwind_bundled=true; do
        settings+=("--config-settings=setup-args=$option")
    done
    rm -rf "$raw"
    echo "building the wheel for Python $version"
    CC="$made/cc" PKG_CONFIG_LIBDIR="$root/usr/lib/$triple/pkgconfig" \
        ".venv/$version/bin/python" -m pip wheel -qq --disable-pip-version-check --no-build-isolation --no-deps \
        --config-settings=build-dir="build/wheels/$version" "${settings[@]}" \
        --config-settings=compile-args=-j1 -w "$raw" . || return 1
    LD_LIBRARY_PATH="$made/libraries" scripts/wheels/repair.sh "$raw"/*.whl dist >"$raw/repair.log" 2>&1 || {
        cat "$raw/repair.log"
        return 1
    }
    grep -E '^(build/adapters|dist)/' "$raw/repair.log"
}

failed=
for version in $pythons; do
    if ! has_headers "$version"; then
        echo "no wheel for Python $version: its headers cannot be used with an older C library"
        failed=1
    elif ! build "$version"; then
        echo "no wheel for Python $version"
        failed=1
    fi
done
.venv/tools/bin/python scripts/wheels/sdist.py dist || failed=1
[ -z "$failed" ]
