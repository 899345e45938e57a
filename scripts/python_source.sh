# For pythons.sh: brings CPython's source from Debian and builds it without the GIL.
# Read by `.`, not run.
# shellcheck shell=bash disable=SC2154,SC2034 # cache, mirror, work and reason are pythons.sh's

# The source as a suite lists it, which apt checks, in folder $2.
source_of_suite() {
    local version=$1 to=$2 suite=$3
    apt_in "$work/source-$suite" "deb-src${mirror#deb} $suite main" >"$work/apt.conf"
    own_apt update || return 1
    (cd "$to" && own_apt source --download-only "python$version")
}

# The source that the mirror's pool still has, where its lists are ahead of it: the newest
# patch release, signed by somebody whose key is in Debian's keyring.
source_of_pool() {
    local version=$1 to=$2 site=${mirror##* } patch name
    local pool=$site/pool/main/p/python$version
    apt_in "$work/keys" "$mirror sid main" >"$work/apt.conf"
    own_apt update || return 1
    (cd "$work/keys" && own_apt download debian-keyring) || return 1
    dpkg-deb --extract "$work"/keys/debian-keyring_*.deb "$work/keys" || return 1
    for patch in {20..0} 0~rc{3..1}; do
        name=python${version}_$version.$patch
        curl -fsS -o "$to/$name-1.dsc" "$pool/$name-1.dsc" 2>>"$cache/apt.log" || continue
        gpgv --keyring "$work/keys/usr/share/keyrings/debian-keyring.gpg" "$to/$name-1.dsc" \
            >>"$cache/apt.log" 2>&1 || continue
        curl -fsS -o "$to/$name.orig.tar.xz" "$pool/$name.orig.tar.xz" 2>>"$cache/apt.log" || continue
        (cd "$to" && awk '/^Checksums-Sha256:/ { on = 1; next } /^[^ ]/ { on = 0 }
            on && /orig\.tar\.xz$/ { print $1 "  " $3 }' "$name-1.dsc" |
            sha256sum --check --strict --status) && return
        rm -f "$to/$name.orig.tar.xz"
    done
    return 1
}

# Puts the source of version $1 into folder $2.
bring_source() {
    local version=$1 to=$2 suite
    mkdir -p "$to"
    for suite in sid testing; do
        source_of_suite "$version" "$to" "$suite" && break
        rm -f "$to"/*
    done
    [ -n "$(ls "$to")" ] || source_of_pool "$version" "$to" ||
        { reason="the mirror of Debian has no source of it" && return 1; }
    tar -C "$to" --strip-components 1 -xf "$to"/*.orig.tar.xz ||
        { reason="its source could not be unpacked" && return 1; }
}

# Builds Python $1 from its source into $2, to run from $3. Little optimized, it takes some four
# minutes; with "-tsan" behind its name the thread sanitizer watches it.
build_source() {
    local name=$1 new=$2 final=$3 version options='--disable-gil'
    version=${name%%t*}
    case $name in *-tsan) options="$options --with-thread-sanitizer" ;; esac
    if ! command -v make >/dev/null || ! command -v "${CC:-cc}" >/dev/null; then
        reason="it is built from source, for which there is no compiler"
        return 1
    fi
    bring_source "$version" "$work/source" || return 1
    echo "building Python $name, which takes a few minutes"
    reason="its source could not be built"
    mkdir "$work/build"
    # shellcheck disable=SC2086 # a list of options
    (cd "$work/build" && OPT='-g -O1 -DNDEBUG -fwrapv' nice ../source/configure -q --prefix="$final/usr" \
        --with-ensurepip=no $options && nice make -j2 && nice make altinstall PYTHON_FOR_BUILD=: DESTDIR="$work/installed") \
        >"$cache/build.log" 2>&1 || return 1
    rm -rf "$new" && mv -T "$work/installed$final" "$new"
    rm -rf "$work/build" "$work/installed" "$work/source"
}
