#!/bin/bash
# Builds the core on musl, the C library of Alpine, without warnings, and runs the C tests. musl_root.sh
# downloads what is needed; if something is not available, the check is skipped and says why.
set -euo pipefail
unset MAKEFLAGS
export PATH="$PWD/.venv/tools/bin:$PATH"

mkdir -p build
made=$(scripts/musl_root.sh 2>build/musl.err) || {
    echo "musl: not run: $(cat build/musl.err)"
    exit 0
}
triple=$(gcc -print-multiarch)
export CC=$made/cc PKG_CONFIG_LIBDIR=$made/root/usr/lib/${triple%-gnu}-musl/pkgconfig
[ -e build/musl/build.ninja ] ||
    meson setup build/musl -Dwerror=true -Dlibrary=false -Dzstd=enabled -Disal=disabled -Dunwind=disabled -Dsymbols=disabled
meson test -C build/musl --print-errorlogs "$@"
