#!/bin/sh
# Installs what wheels are built with in a container of manylinux, which is AlmaLinux 8, or
# of musllinux, which is Alpine. isa-l is done without where there is none: zlib compresses
# then.
set -eu

if command -v apk; then
    apk add zlib-dev zstd-dev libunwind-dev elfutils-dev
    apk add isa-l-dev || echo "no isa-l: .gz files are compressed by zlib"
    exit
fi
dnf install -y epel-release
dnf install -y --enablerepo=powertools zlib-devel libzstd-devel libunwind-devel elfutils-devel
dnf install -y --enablerepo=powertools isa-l-devel || echo "no isa-l: .gz files are compressed by zlib"
