#!/bin/bash
# Builds the core and the extension for aarch64, without a warning, and runs tests
# under emulation by qemu. What it takes is fetched by aarch64_root.sh; where that
# cannot be had, the check is not run, and says why.
#
#   check_aarch64.sh            the tests in C, and those in Python that
#                               proofs/aarch64.py names; it writes what came out, and
#                               what is not claimed, to proofs/results/aarch64.md
#   check_aarch64.sh --again NAME...   of the latter, test_NAME.py again
#   check_aarch64.sh FILE...    those tests in Python, or what else pytest is to do
set -euo pipefail
unset MAKEFLAGS PYTHONDONTWRITEBYTECODE
export PATH="$PWD/.venv/tools/bin:$PATH"

not_run() {
    echo "aarch64: not run: $1"
    exit 0
}

for tool in gcc g++; do
    command -v "aarch64-linux-gnu-$tool" >/dev/null || not_run "there is no aarch64-linux-gnu-$tool"
done
mkdir -p build/aarch64
made=$(scripts/aarch64_root.sh 2>build/aarch64/root.err) || not_run "$(cat build/aarch64/root.err)"
root=$made/root
here=$PWD/build/aarch64
venv=$here/venv
python=$venv/bin/python
of_core=$here/c/meson-logs/testlog.junit.xml

# A program of this machine that runs python3.13 of the other, so that subprocesses
# and scripts find it by its name. qemu hands the name on, and Python finds its
# environment by that.
make_environment() {
    mkdir -p "$venv/bin" "$venv/lib/python3.13/site-packages"
    cat >"$python" <<END
#!/bin/sh
exec "$made/qemu-aarch64" -L "$root" -0 "\$0" "$root/usr/bin/python3.13" "\$@"
END
    chmod +x "$python"
    ln -sf python "$venv/bin/python3"
    ln -sf python "$venv/bin/python3.13"
    printf 'home = %s\ninclude-system-site-packages = false\n' "$root/usr/bin" >"$venv/pyvenv.cfg"
    .venv/tools/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$venv/lib/python3.13/site-packages/vestige-tools.pth"
    for tool in cc:gcc c++:g++; do # what tests compile with
        printf '#!/bin/sh\nexec aarch64-linux-gnu-%s --sysroot="%s" "$@"\n' "${tool#*:}" "$root" >"$venv/bin/${tool%:*}"
        chmod +x "$venv/bin/${tool%:*}"
    done
}

write_cross_file() {
    cat >"$here/cross.ini" <<END
[binaries]
c = '$venv/bin/cc'
cpp = '$venv/bin/c++'
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
pkg-config = 'pkg-config'
python = '$python'
exe_wrapper = ['$made/qemu-aarch64', '-L', '$root']

[properties]
sys_root = '$root'
pkg_config_libdir = ['$root/usr/lib/aarch64-linux-gnu/pkgconfig', '$root/usr/share/pkgconfig']

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
}

test_core() {
    echo "tests in C, see build/aarch64/c.log"
    [ -e build/aarch64/c/build.ninja ] ||
        meson setup build/aarch64/c -Dwerror=true --cross-file build/aarch64/cross.ini >build/aarch64/c.log
    rm -f "$of_core"
    # What failed, $of_core tells.
    meson test -C build/aarch64/c --timeout-multiplier 10 --print-errorlogs >>build/aarch64/c.log 2>&1 || true
}

# The wheel as any machine of that kind would build it, with warnings as errors.
install_package() {
    "$python" -m pip install -qq --disable-pip-version-check --no-build-isolation --no-deps \
        --force-reinstall --config-settings=build-dir=build/aarch64/wheel \
        --config-settings=setup-args=-Dwerror=true \
        --config-settings=setup-args=--cross-file="$here/cross.ini" .
}

install_test_tools() {
    [ -e "$venv/.test-tools" ] && return
    .venv/tools/bin/python -m pip install -qq --disable-pip-version-check --upgrade \
        --target "$venv/lib/python3.13/site-packages" --only-binary :all: --python-version 3.13 \
        --implementation cp --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
        --platform manylinux2014_aarch64 -r tests/requirements.txt
    touch "$venv/.test-tools"
}

make_environment
write_cross_file
echo "building vestige for aarch64"
install_package
install_test_tools
if [ "${1:-}" != --again ] && [ $# -ne 0 ]; then
    VESTIGE_EMULATED=1 PATH="$venv/bin:$PATH" exec "$python" -m pytest -q -rfEs -m "not sql" "$@"
fi
[ $# -ne 0 ] || test_core
exec .venv/tools/bin/python proofs/aarch64.py --python "$python" --qemu "$made/qemu-aarch64" --in-c "$of_core" "$@"
