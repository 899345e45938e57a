#!/bin/sh
# Records the golden traces: record.sh PYTHON SITE OUT, where PYTHON is the
# prefix of a Python 3.11, SITE its site-packages with vestige, torch 2.13.0 and
# greenlet, OUT a folder to write. What is in traces/ was written by 0.1.0 and
# stays as it is: a new kind of trace gets a new name.
#
# The programs run in a namespace of their own, where everything has a neutral
# path and the machine a neutral name, which are in the traces. Needs root.
set -eu

python=$(realpath "$1") site=$(realpath "$2") out=$(realpath "$3")
export python site out
programs=$(realpath "$(dirname "$0")/programs")
export programs
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount --uts sh -eu -c '
hostname golden
mount -t tmpfs golden /mnt
mkdir /mnt/python /mnt/site /mnt/out /mnt/programs /mnt/cache
mount --bind "$python" /mnt/python
mount --bind "$site" /mnt/site
mount --bind "$out" /mnt/out
mount --bind "$programs" /mnt/programs
mount -t tmpfs golden "$HOME" # libpython would be found by its own path
cd /mnt/programs
PYTHONPATH=/mnt/site LD_LIBRARY_PATH=/mnt/python/lib XDG_CACHE_HOME=/mnt/cache \
    /mnt/python/bin/python3 record_all.py /mnt/out
'
