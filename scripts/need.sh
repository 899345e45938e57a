#!/bin/sh
# Installs the system packages that are missing, where that is permitted (as
# root or by sudo without a password); otherwise says what to install. With the
# argument "test" also those that only the tests need.
set -eu

has_header() {
    echo "#include <$1>" | ${CC:-cc} -E -o /dev/null - 2>/dev/null
}

missing=
optional=
has_header zlib.h || missing="$missing zlib1g-dev"
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
if [ "${1:-}" = test ]; then
    command -v g++ >/dev/null || missing="$missing g++"
    command -v pkg-config >/dev/null || missing="$missing pkg-config"
    ldconfig -p 2>/dev/null | grep -q 'libjemalloc\.so\.2' ||
        optional="$optional libjemalloc2"
    command -v chromium >/dev/null || optional="$optional chromium"
    command -v valgrind >/dev/null || optional="$optional valgrind"
    command -v node >/dev/null || echo "no node: tests with Perfetto are skipped"
fi
has_header isa-l/igzip_lib.h || optional="$optional libisal-dev"
has_header zstd.h || optional="$optional libzstd-dev"
has_header libunwind.h || optional="$optional libunwind-dev"
has_header elfutils/libdwfl.h || optional="$optional libdw-dev"
[ -z "$missing$optional" ] && exit

if command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
        as_root="env"
    elif sudo -n true 2>/dev/null; then
        as_root="sudo"
    fi
fi

if [ -n "${as_root:-}" ]; then
    echo "installing:$missing$optional"
    $as_root apt-get update -qq || true
    install="$as_root apt-get install -y -qq --no-install-recommends"
    # shellcheck disable=SC2086 # package names, split on purpose
    if [ -z "$missing" ] || $install $missing >/dev/null; then
        missing=
    fi
    wanted=$optional
    optional=
    for package in $wanted; do
        $install "$package" >/dev/null || optional="$optional $package"
    done
fi

if [ -n "$optional" ]; then
    echo "not here, and done without:$optional"
    echo "  (libisal-dev compresses faster, libzstd-dev packs traces," \
        "libunwind-dev takes native frames, libdw-dev names them," \
        "libjemalloc2 is what a test preloads, chromium opens our pages in tests, valgrind counts instructions)"
fi
if [ -n "$missing" ]; then
    echo "please install these packages first:$missing" >&2
    exit 1
fi
