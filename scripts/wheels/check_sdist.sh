#!/bin/bash
# Builds the sdist in dist/ as pip does on a machine that has a C compiler and zlib, and
# nothing else that vestige could use: the compiler sees the headers of those two packages
# of Debian 11 alone. Then records, reports and exports, and looks that what needs more
# says so.
set -euo pipefail
unset MAKEFLAGS
. scripts/debian.sh

(($(find dist -maxdepth 1 -name 'vestige-*.tar.gz' | wc -l) == 1)) || give_up "there is not one sdist in dist; \`make sdist\` makes it"
begin_root sdist
command -v gcc >/dev/null || give_up "there is no gcc"
triple=$(gcc -print-multiarch)
root=$work/root
unpack_packages bullseye "$(dpkg --print-architecture)" "$root" all libc6-dev zlib1g-dev
settle_links "$root" "$root"
cat >"$work/cc" <<END
#!/bin/sh
exec gcc --sysroot="$root" -B"$root/usr/lib/$triple" -L"$root/usr/lib/$triple" -L"$root/lib/$triple" "\$@"
END
chmod +x "$work/cc"

"$(scripts/find_python.sh "$(scripts/find_python.sh --default)")" -m venv "$work/venv"
PATH=$work/venv/bin:$PATH
CC=$work/cc PKG_CONFIG_LIBDIR=$root/usr/lib/$triple/pkgconfig \
    python -m pip install -qq --disable-pip-version-check dist/vestige-*.tar.gz
cd "$work"
cp "$OLDPWD/examples/demo.py" .
vestige run -o demo.vst demo.py >demo.txt 2>&1
vestige report demo.vst | grep 'demo.py' >report.txt # to its end, or vestige fails at the pipe
vestige export demo.vst -o demo.json.gz
gzip -t demo.json.gz
! vestige pack demo.vst -o packed.vst 2>pack.txt || give_up "it packs, so it found zstd"
grep -q 'pack' pack.txt
echo "sdist: $(vestige --version) built with a C compiler and zlib alone; it records, reports and exports. $(head -n 1 pack.txt)"
