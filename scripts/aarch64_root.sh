#!/bin/bash
# Downloads everything that is needed to build and run programs for aarch64 on this machine into a cache
# folder outside the tree, and prints the folder: root/ has CPython 3.13 of Debian 13 for arm64, with headers,
# the C library and vestige's build dependencies; qemu runs it. Nothing is installed, and root is not needed.
# If something is not available, the reason goes to standard error, and the exit code is 1.
#
# The mirror is that of apt's own configuration (or DEBIAN_MIRROR); apt checks the
# signature of what it lists, as it does for the system.
set -euo pipefail
. scripts/debian.sh

recipe=1 # counted up when this script makes something else of the same packages
suite=trixie
packages="python3.13 libpython3.13-dev libpython3.13-testsuite libc6-dev libstdc++-14-dev zlib1g-dev
    libisal-dev libzstd-dev libunwind-dev libdw-dev"
final=$cache/aarch64

if [ "$(cat "$final/recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$final"
    exit
fi
begin_root aarch64

new=$work/new
mkdir -p "$new/root/usr/lib" "$new/root/usr/bin"
ln -s usr/lib "$new/root/lib"
ln -s usr/bin "$new/root/bin"
# shellcheck disable=SC2086 # a list of packages
unpack_packages "$suite" arm64 "$new/root" all $packages
unpack_packages "$suite" "$(dpkg --print-architecture)" "$work/qemu" alone qemu-user
cp "$work/qemu/usr/bin/qemu-aarch64" "$new/qemu-aarch64" # it needs no library
settle_links "$new/root" "$final/root"
# Debian has pyconfig.h apart, as it differs by architecture.
cp "$new"/root/usr/include/aarch64-linux-gnu/python3.13/pyconfig.h "$new/root/usr/include/python3.13/"
# Programs under qemu read these files instead of this machine's: qemu's counter is the one by which a kernel
# for aarch64 would keep time.
clock=$new/root/sys/devices/system/clocksource/clocksource0
mkdir -p "$clock"
echo arch_sys_counter >"$clock/current_clocksource"
"$new/qemu-aarch64" -L "$new/root" "$new/root/usr/bin/python3.13" -I -c 'import ssl, zlib, ctypes, sqlite3' \
    >>"$log" 2>&1 || give_up "what was unpacked does not run here (see $log)"
echo "$recipe" >"$new/recipe"
finish_root "$new" "$final"
echo "$final"
