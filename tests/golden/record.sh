#!/bin/sh
# Records golden traces: record.sh PYTHON SITE OUT [PROGRAM], where PYTHON is the
# prefix of a Python 3.11, SITE its site-packages with vestige, torch 2.13.0 and
# greenlet, OUT a folder to write. PROGRAM is record_all.py or
# record_later.py, each for some of the traces. A trace in traces/ never changes: a
# new kind of trace gets a new name.
#
# The programs run in a namespace of their own, where everything has a neutral
# path and the machine a neutral name, which are in the traces. Needs root.
set -eu

python=$(realpath "$1") site=$(realpath "$2") out=$(realpath "$3")
record=${4:-record_all.py}
export python site out record
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
    /mnt/python/bin/python3 "$record" /mnt/out
'
