#!/bin/sh
# Installs what wheels are built with in a container of manylinux, which is AlmaLinux 8.
# isa-l is done without where there is none: zlib compresses then.
set -eu

dnf install -y epel-release
dnf install -y --enablerepo=powertools zlib-devel libzstd-devel libunwind-devel elfutils-devel
dnf install -y --enablerepo=powertools isa-l-devel || echo "no isa-l: .gz files are compressed by zlib"
