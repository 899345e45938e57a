#!/bin/bash
# Downloads everything that is needed to build the core for musl, the C library of Alpine, into a cache folder
# outside the tree, and prints the folder: root/ has Debian's musl with headers, Linux's headers, and zlib and
# zstd built from Debian's sources; cc runs this machine's gcc with them. The results of cc run on this
# machine. Nothing is installed, and root is not needed. If something is not available, the reason goes to
# standard error, and the exit code is 1.
set -euo pipefail
. scripts/debian.sh

recipe=1 # counted up when this script makes something else of the same packages
suite=trixie
final=$cache/musl

if [ "$(cat "$final/recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$final"
    exit
fi
command -v gcc >/dev/null || give_up "there is no gcc"
triple=$(gcc -print-multiarch)
case $triple in
*-linux-gnu) ;;
*) give_up "this gcc is not one of Debian's" ;;
esac
begin_root musl
new=$work/new
root=$new/root
arch=$(dpkg --print-architecture)
unpack_packages "$suite" "$arch" "$root" these musl musl-dev linux-libc-dev
musl=${triple%-gnu}-musl
headers=usr/include/$musl
libraries=usr/lib/$musl
loader=$(cd "$root" && find . -name libc.so -path '*musl*' -type f -print -quit)
[ -n "$loader" ] && [ -e "$root/$libraries/crti.o" ] || give_up "Debian's musl lies elsewhere"
ln -s "root/$loader" "$new/ld-musl.so.1"

# Makes $new/$1, a compiler for a root that lies in folder $2, by specs as Debian's
# musl-gcc has them.
write_compiler() {
    local name=$1 at=$2 include
    include="-nostdinc -isystem $at/root/$headers -isystem include%s -isystem $at/root/usr/include -isystem $at/root/usr/include/$triple"
    cat >"$new/$name.specs" <<END
%rename cpp_options old_cpp_options

*cpp_options:
$include %(old_cpp_options)

*cc1:
%(cc1_cpu) $include

*link_libgcc:
-L$at/root/$libraries -L .%s

*libgcc:
libgcc.a%s %:if-exists(libgcc_eh.a%s)

*startfile:
%{!shared: $at/root/$libraries/Scrt1.o} $at/root/$libraries/crti.o crtbeginS.o%s

*endfile:
crtendS.o%s $at/root/$libraries/crtn.o

*link:
-dynamic-linker $at/ld-musl.so.1 -nostdlib %{shared:-shared} %{static:-static} %{rdynamic:-export-dynamic}

*esp_link:


*esp_options:


*esp_cpp_options:


END
    printf '#!/bin/sh\nexec gcc "$@" -specs "%s"\n' "$at/$name.specs" >"$new/$name"
    chmod +x "$new/$name"
}

# Builds archive $2 of source package $1 by make in its folder $3, and copies it and
# headers $4 beside those of musl, where cc looks; pkg-config knows it as $5.
build_library() {
    local package=$1 archive=$2 folder=$3 public=$4 known=$5 sources=$work/sources/$1 library
    mkdir -p "$sources/all"
    (cd "$sources" && apt-get -qq -c "$work/source.conf" source --download-only "$package") >>"$log" 2>&1 ||
        give_up "apt could not bring the sources of $package (see $log)"
    tar -x -C "$sources/all" --strip-components=1 -f "$sources"/*.orig.tar.*
    (
        cd "$sources/all"
        [ ! -x configure ] || CC=$new/first_cc ./configure --static
        cd "$folder"
        make -j2 CC="$new/first_cc" CFLAGS='-O2 -fPIC' "$archive"
        # shellcheck disable=SC2086 # a list of files
        cp $public "$root/$headers/"
        cp "$archive" "$root/$libraries/"
    ) >>"$log" 2>&1 || give_up "$package could not be built for musl (see $log)"
    library=${archive#lib}
    mkdir -p "$root/$libraries/pkgconfig"
    printf 'Name: %s\nDescription: %s for musl\nVersion: %s\nLibs: -l%s\n' "$known" "$package" \
        "$(cd "$sources" && echo *.dsc | sed 's/.*_\(.*\)\.dsc/\1/; s/^[0-9]*://; s/[-+].*//')" "${library%.a}" \
        >"$root/$libraries/pkgconfig/$known.pc"
}

write_compiler cc "$final"
write_compiler first_cc "$new"
apt_in "$work/source" "${mirror/#deb /deb-src } $suite main" >"$work/source.conf"
apt-get -qq -c "$work/source.conf" update >>"$log" 2>&1 || give_up "apt could not read Debian's sources (see $log)"
build_library zlib libz.a . 'zlib.h zconf.h' zlib
build_library libzstd libzstd.a lib 'zstd.h zstd_errors.h zdict.h' libzstd
rm "$new/first_cc" "$new/first_cc.specs"
echo "$recipe" >"$new/recipe"
finish_root "$new" "$final"
echo "$final"
