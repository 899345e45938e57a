#!/bin/sh
# Installs libvestige from build directory $1 into the empty prefix $2, then
# builds and runs each C example against it the way a user would: pkg-config,
# once shared, once static. An example is a file, or a folder of them.
set -eu

rm -rf "$2"
meson install -C "$1" --quiet
PKG_CONFIG_PATH="$2/lib/pkgconfig"
LD_LIBRARY_PATH="$2/lib"
export PKG_CONFIG_PATH LD_LIBRARY_PATH

cd "$2"
for source in "$OLDPWD"/examples/c/*.c "$OLDPWD"/examples/c/*/; do
    name=$(basename "$source" .c)
    case $source in
    */) set -- "$source"*.c ;;
    *) set -- "$source" ;;
    esac
    # shellcheck disable=SC2046 # flags, split on purpose
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$@" -o "$name" \
        $(pkg-config --cflags --libs vestige)
    "./$name"
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c11 "$@" -o "$name-static" \
        $(pkg-config --cflags vestige) lib/libvestige.a \
        $(pkg-config --static --libs-only-l vestige | sed 's/-lvestige//')
    "./$name-static"
done
