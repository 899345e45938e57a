#!/bin/bash
# Brings a small Debian to try wheels in into a cache folder outside of the tree, and
# prints where: no compiler, no headers, a Python with venv.
#
#   chroot.sh debian11   glibc 2.31. Its own Python is 3.9, which is too old, so CPython
#                        3.11 is built from Debian 12's sources, on its C library
#   chroot.sh debian13   its own Python 3.13
#
# They are Debian's packages, unpacked: nothing is installed, no root is needed to make
# one. The reason why it cannot be had goes to standard error, and the exit code is 1.
set -euo pipefail
. scripts/debian.sh

recipe=4 # counted up when this script makes something else of the same packages
name=$1
final=$cache/try-$name
# What every Debian has, as far as anything here runs it, and ps.
base="libc-bin bash coreutils diffutils findutils grep gzip sed tar util-linux procps zlib1g libstdc++6"

if [ "$(cat "$final/recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$final"
    exit
fi
begin_root "try-$name"
new=$work/new
root=$new/root
arch=$(dpkg --print-architecture)

# Builds the source package python3.11 of Debian 12 on the C library of the wheels, for
# /opt/python below $root. What its modules need at run time is in $modules.
modules="libbz2-1.0 libffi7 liblzma5 libsqlite3-0"
headers="libc6-dev libbz2-dev libffi-dev liblzma-dev libsqlite3-dev zlib1g-dev"
build_python() {
    local made sources=$work/sources version=3.11
    made=$(scripts/wheels_root.sh) || exit 1
    mkdir -p "$sources"
    apt_in "$work/source" "${mirror/#deb /deb-src } bookworm main" >"$work/source.conf"
    {
        apt-get -qq -c "$work/source.conf" update &&
            (cd "$sources" && apt-get -qq -c "$work/source.conf" source --download-only "python$version")
    } >>"$log" 2>&1 || give_up "apt could not bring the sources of Python $version (see $log)"
    tar -x -C "$sources" -f "$sources"/python*.orig.tar.*
    # shellcheck disable=SC2086 # a list of packages
    unpack_packages bullseye "$arch" "$work/headers" all $headers
    rm "$work/$arch/archives"/*.deb
    settle_links "$work/headers" "$work/headers"
    sed "s|^root=.*|root=\"$work/headers\"|" "$made/cc" >"$work/cc"
    chmod +x "$work/cc"
    (
        cd "$sources"/Python-*
        # Its modules are built as for another machine, so that nothing of this one's own
        # headers and libraries is found.
        sed -i 's/^        self.add_multiarch_paths()/        pass/' setup.py
        ./configure --prefix=/opt/python --without-ensurepip CC="$work/cc" OPT='-O2 -DNDEBUG'
        _PYTHON_HOST_PLATFORM=linux-$(uname -m)
        export _PYTHON_HOST_PLATFORM
        make -j2
        make install DESTDIR="$root"
    ) >>"$log" 2>&1 || give_up "Python $version could not be built (see $log)"
    rm -rf "$root"/opt/python/lib/python*/test
}

# Compiles the modules of Debian's Python $1, as its package does when it is installed: the
# ordinary user cannot, and programs would compile them each time.
compile_modules() {
    local loader
    loader=$(find "$root/lib64/" "$root/lib/" -name 'ld-linux*' -print -quit)
    "$loader" --library-path "$root/usr/lib/$(gcc -print-multiarch)" "$root/usr/bin/python$1" -I -S -m compileall -q \
        -s "$root" "$root/usr/lib/python$1" >>"$log" 2>&1 || give_up "Python's modules could not be compiled (see $log)"
}

mkdir -p "$root"
case $name in
debian11)
    build_python
    # shellcheck disable=SC2086 # lists of packages
    unpack_packages bullseye "$arch" "$root" all $base $modules
    python=/opt/python/bin/python3.11
    ;;
debian13)
    # shellcheck disable=SC2086 # a list of packages
    unpack_packages trixie "$arch" "$root" all $base python3.13 python3.13-venv
    compile_modules 3.13
    python=/usr/bin/python3.13
    ;;
*) give_up "there is no chroot called $name" ;;
esac

mkdir -p "$root"/{proc,dev,tmp,home/user,etc}
chmod 1777 "$root/tmp"
echo 'root:x:0:0:root:/root:/bin/sh
user:x:1000:1000::/home/user:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:
user:x:1000:' >"$root/etc/group"
# What the package's own script would put together; Debian's pip reads it even without
# a network.
if [ -d "$root/usr/share/ca-certificates" ]; then
    mkdir -p "$root/etc/ssl/certs"
    cat "$root"/usr/share/ca-certificates/*/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
fi
[ -e "$root/bin/sh" ] || ln -s bash "$root/bin/sh"
echo "$python" >"$new/python"
echo "$recipe" >"$new/recipe"
finish_root "$new" "$final"
echo "$final"
