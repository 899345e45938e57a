# Shared by scripts that unpack Debian's packages outside the system: chooses the mirror, and gives apt
# separate lists and archives. Sourced, not run.
# shellcheck shell=bash

# Prints the beginning of a line of sources.list: the first Debian mirror in apt's configuration (or
# DEBIAN_MIRROR), and Debian's keys. Without a file of keys, apt uses the keys that it trusts for all sources.
find_mirror() {
    local site=${DEBIAN_MIRROR:-} keys
    # shellcheck disable=SC2016 # apt expands it
    [ -n "$site" ] ||
        site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null |
            grep -m 1 -E '/debian/?$') || return 1
    keys=$(find /usr/share/keyrings -name 'debian-archive-keyring.[gp]*' 2>/dev/null | head -n 1)
    echo "deb ${keys:+[signed-by=$keys] }$site"
}

# Makes in folder $1 everything that apt needs for source line $2, and prints the configuration: an empty
# system, separate from the machine's own apt.
apt_in() {
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    : >"$1/status"
    echo "$2" >"$1/sources.list"
    cat <<END
Dir::Etc::SourceList "$1/sources.list";
Dir::Etc::SourceParts "-";
Dir::State "$1";
Dir::State::Status "$1/status";
Dir::Cache "$1";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User ""; # the folder is private: no other user can write to it
#clear APT::Update::Post-Invoke; # what the system does after its own updates
#clear APT::Update::Post-Invoke-Success;
END
}

# ---- a folder of unpacked packages, for scripts that make one -------------------

cache=${XDG_CACHE_HOME:-$HOME/.cache}/vestige

# Exits with the reason why the packages are not available.
give_up() {
    echo "$1" >&2
    exit 1
}

# Makes $work, a private folder in which $cache/$1 is built, and names its log.
begin_root() {
    command -v apt-get >/dev/null || give_up "there is no apt"
    mirror=$(find_mirror) || give_up "apt knows no mirror of Debian"
    # Nobody else may change what we run.
    mkdir -p "$cache"
    { [ -O "$cache" ] && [ ! -L "$cache" ]; } || give_up "$cache belongs to somebody else"
    work=$(mktemp -d "$cache/$1-work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    log=$cache/$1-apt.log
    : >"$log"
}

# Unpacks packages $5... of Debian $1 for architecture $2 into folder $3, and all that
# they depend on if $4 is "all". They stay in $work/<architecture>/archives.
unpack_packages() {
    local suite=$1 arch=$2 to=$3 what=$4 package
    shift 4
    mkdir -p "$to"
    apt_in "$work/$arch" "$mirror $suite main" >"$work/apt.conf"
    cat >>"$work/apt.conf" <<END
APT::Architecture "$arch";
#clear APT::Architectures;
APT::Architectures { "$arch"; };
END
    apt-get -qq -c "$work/apt.conf" update >>"$log" 2>&1 ||
        give_up "apt could not read and verify Debian $suite for $arch (see $log)"
    if [ "$what" = all ]; then
        apt-get -qq -c "$work/apt.conf" install --yes --download-only "$@" >>"$log" 2>&1
    else
        (cd "$work/$arch/archives" && apt-get -qq -c "$work/apt.conf" download "$@") >>"$log" 2>&1
    fi || give_up "apt could not bring $* for $arch (see $log)"
    for package in "$work/$arch/archives"/*.deb; do
        dpkg-deb --extract "$package" "$to" || give_up "a package could not be unpacked"
    done
}

# Makes links of root $1 that begin at / begin at $2, the root's final place.
settle_links() {
    local link
    find "$1" -type l -lname '/*' | while read -r link; do
        ln -sfn "$2$(readlink "$link")" "$link"
    done
}

# Renames $1, which is complete, to its final name $2.
finish_root() {
    [ ! -e "$2" ] || mv -T "$2" "$work/old"
    mv -T "$1" "$2"
}
