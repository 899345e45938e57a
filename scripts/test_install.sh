#!/bin/sh
# Installs libvestige from build directory $1 into the empty prefix $2, then
# builds and runs each C example against it the way a user would: pkg-config,
# once shared, once static. An example is a file, or a folder of them. Before
# that, each header that was installed compiles alone, in C and in C++, and the
# library exports what they declare and nothing else.
set -eu

rm -rf "$2"
meson install -C "$1" --quiet
PKG_CONFIG_PATH="$2/lib/pkgconfig"
LD_LIBRARY_PATH="$2/lib"
export PKG_CONFIG_PATH LD_LIBRARY_PATH

cd "$2"
for header in include/vestige/*.h; do
    program="#include <vestige/${header##*/}>"
    # shellcheck disable=SC2046 # flags, split on purpose
    echo "$program" | ${CC:-cc} -xc -std=c11 -Wall -Wextra -Werror \
        -fsyntax-only $(pkg-config --cflags vestige) -
    # shellcheck disable=SC2046
    echo "$program" | ${CXX:-c++} -xc++ -std=c++17 -Wall -Wextra -Werror \
        -fsyntax-only $(pkg-config --cflags vestige) -
done
cat include/vestige/*.h | tr '\n' ' ' | grep -o 'VST_API [^;(]*' |
    sed 's/ VST_TLS_MODEL$//' | grep -o 'vst_[a-z0-9_]*$' | sort >declared
nm -D --defined-only lib/libvestige.so | cut -d' ' -f3 | sort | diff declared -
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
