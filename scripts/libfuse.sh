#!/bin/bash
# Prints the path of libfuse 3, with which tests mount a file system of their own. Debian's is unpacked into a cache
# folder outside of the tree if the system has none. Nothing is installed, no root is needed. The reason why the library
# cannot be had goes to standard error, and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian.sh

final=$cache/libfuse
system=$( (PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true) | sed -n 's/.*libfuse3\.so\.3 .*=> //p' | head -n 1)
if [ -z "$system" ] && [ ! -e "$final" ]; then
    begin_root libfuse
    unpack_packages bookworm "$(dpkg --print-architecture)" "$work/new" these libfuse3-3
    finish_root "$work/new" "$final"
fi
[ -n "$system" ] || system=$(find "$final" -name 'libfuse3.so.3' | head -n 1)
[ -n "$system" ] || give_up "Debian's libfuse lies elsewhere"
echo "$system"
