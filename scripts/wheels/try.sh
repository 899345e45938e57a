#!/bin/sh
# Run by check.sh inside of a chroot, as an ordinary user: installs the wheel for Python
# $1 from ~/wheels into a new environment, with no network and no compiler, records,
# reports, packs and takes native tracebacks, and runs the tests in Python. What it
# prints in the end is kept. With PIP_OF, a Python whose pip installs, it is no chroot, and
# what is around may have a compiler.
set -eu

python=$1
shift
cd "$HOME"
if [ -z "${PIP_OF:-}" ]; then
    for tool in cc gcc clang c++ ld meson ninja; do
        ! command -v "$tool" || { echo "there is a $tool here" && exit 1; }
    done
    [ "$(id -u)" != 0 ] || { echo "this is root" && exit 1; }
fi

# Makes environment $1, with the packages that follow.
environment() {
    made=$1
    shift
    "$python" -m venv ${PIP_OF:+--without-pip} "$made"
    "${PIP_OF:-$made/bin/python}" -m pip --python "$made/bin/python" install -qq --disable-pip-version-check \
        --no-index --find-links wheels "$@"
}

environment venv vestige
PATH=$HOME/venv/bin:$PATH
export PATH

echo "vestige $(vestige --version | sed 's/.* //'), $(python -c 'import platform; print(*platform.libc_ver(), "Python", platform.python_version())')"
vestige info | sed 's/^/  /'
vestige run -o demo.vst examples/demo.py >demo.txt 2>&1
vestige report demo.vst | grep -q 'demo.py'
vestige run -q --storage copied -o copied.vst examples/demo.py >copied.txt 2>&1
grep -q 'and copied$' copied.txt
vestige info copied.vst | grep -q 'ended *clean'
vestige pack demo.vst -o packed.vst
vestige info packed.vst | grep -q -i packed
vestige export packed.vst -o demo.json.gz
python - <<'END'
import gzip, json

assert json.load(gzip.open("demo.json.gz"))["traceEvents"]
from vestige.traceback import CapturedTraceback, gather_traceback, symbolize_tracebacks

taken = gather_traceback(True, False, True)
names = [frame["name"] for frame in symbolize_tracebacks([taken])[0]]
print("native frames:", len(names), "of which", ", ".join(names[-3:]))
assert "Py_RunMain" in names or "Py_BytesMain" in names, names
loaded = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print("libraries of the wheel in use:", *sorted(path.rsplit("/", 1)[1].split("-")[0] for path in loaded if "vestige.libs" in path))
END
echo "it records, reports, packs, exports and takes native tracebacks"

# In an environment of its own: the tests about torch need a compiler.
if ls wheels/torch-*.whl >/dev/null 2>&1; then
    environment with_torch vestige torch numpy
    with_torch/bin/python - 2>torch.txt <<'END'
import json
import torch
import vestige

with vestige.profile(with_stack=False) as profile:
    torch.sin(torch.ones(2))
profile.export_chrome_trace("torch.json")
names = [event["name"] for event in json.load(open("torch.json"))["traceEvents"] if event.get("cat") == "cpu_op"]
assert "aten::sin" in names, names
loaded = {line.split()[-1].rsplit("/", 1)[1] for line in open("/proc/self/maps") if "/prebuilt/operators" in line}
print("torch", torch.__version__, "records", len(names), "operators by", *loaded)
END
    ! grep '^vestige:' torch.txt || exit 1
fi
[ -z "${TRY_ONLY:-}" ] || exit 0

venv/bin/python -m pip install -qq --disable-pip-version-check --no-index --find-links wheels -r tests/requirements.txt
[ $# -ne 0 ] || set -- tests/python
exec python -m pytest -q -rfEs -p no:cacheprovider -m "not sql" "$@"
