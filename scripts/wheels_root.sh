#!/bin/bash
# Brings what wheels for older systems are built with into a cache folder outside of the
# tree, and prints where: root/ has the C library of Debian 11 (glibc 2.31) with headers
# and the libraries that vestige uses, cc and c++ run this machine's gcc and g++ on it,
# libraries/ has what goes into wheels, and owners says which package and version each
# library is of. Nothing is installed, no root is needed.
# The reason why it cannot be had goes to standard error, and the exit code is 1.
#
# Not a chroot, because gcc and the Pythons of this machine do well with the older
# headers; and not zig, which has its own linker, and no gcc to optimize as a whole.
#
# The mirror is that of apt's own configuration (or DEBIAN_MIRROR); apt checks the
# signature of what it lists, as it does for the system.
set -euo pipefail
. scripts/debian.sh

recipe=2 # counted up when this script makes something else of the same packages
suite=bullseye
packages="libc6-dev libstdc++-10-dev zlib1g-dev libisal-dev libzstd-dev libunwind-dev libdw-dev"
final=$cache/wheels

if [ "$(cat "$final/recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$final"
    exit
fi
begin_root wheels
command -v gcc >/dev/null || give_up "there is no gcc"
triple=$(gcc -print-multiarch)
[ -n "$triple" ] || give_up "this gcc is not one of Debian's, and would take the libraries of the system"
new=$work/new
arch=$(dpkg --print-architecture)
# shellcheck disable=SC2086 # a list of packages
unpack_packages "$suite" "$arch" "$new/root" all $packages
settle_links "$new/root" "$final/root"
sed -i "s|=/usr|=$final/root/usr|" "$new/root/usr/lib/$triple/pkgconfig"/*.pc

for package in "$work/$arch/archives"/*.deb; do
    name=$(dpkg-deb --field "$package" Package)
    version=$(dpkg-deb --field "$package" Version)
    dpkg-deb --contents "$package" | sed -n 's|.* \./\(.*/lib[^ /]*\.so\.[0-9.]*\)\( -> .*\)\?$|\1|p' |
        while read -r path; do
            printf '%s\tdeb/debian/%s@%s?arch=%s&distro=%s\t%s\n' "${path##*/}" "$name" "$version" "$arch" "$suite" \
                "$final/root/usr/share/doc/$name/copyright"
        done
done >"$new/owners"

# What auditwheel puts into wheels, apart from the C library: programs of this machine
# that look here first must not find that.
mkdir "$new/libraries"
for name in libisal.so.2 liblzma.so.5 libunwind.so.8 libz.so.1 libzstd.so.1; do
    path=$(find "$new/root/lib" "$new/root/usr/lib" -name "$name" -print -quit)
    [ -n "$path" ] || give_up "there is no $name in what was unpacked"
    ln -s "$final${path#"$new"}" "$new/libraries/$name"
done

# This gcc looks into the system's folders before those of a --sysroot, since it is
# the system's own compiler; -B and -L come before both.
cat >"$new/cc" <<END
#!/bin/sh
root="$final/root"
exec gcc --sysroot="\$root" -B"\$root/usr/lib/$triple" -L"\$root/usr/lib/$triple" -L"\$root/lib/$triple" "\$@"
END
# The C++ library and its headers are those of gcc 10, whatever this g++ would take.
cat >"$new/c++" <<END
#!/bin/sh
root="$final/root"
exec g++ --sysroot="\$root" -nostdinc++ -isystem "\$root/usr/include/c++/10" \\
    -isystem "\$root/usr/include/$triple/c++/10" -isystem "\$root/usr/include/c++/10/backward" \\
    -B"\$root/usr/lib/$triple" -L"\$root/usr/lib/gcc/$triple/10" -L"\$root/usr/lib/$triple" -L"\$root/lib/$triple" "\$@"
END
chmod +x "$new/cc" "$new/c++"
echo "$recipe" >"$new/recipe"
finish_root "$new" "$final"
echo "$final"
