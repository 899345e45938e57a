"""If the file cannot grow, the recording ends and the program does not notice: no signal, and unchanged exit code and
output. One line on stderr reports the problem, and the file says how much is missing.
"""

import contextlib
import json
import os
import resource
import subprocess

import pytest

from traces import record, steps, totals
from vestige import Trace
from vestige._core import View

pytestmark = pytest.mark.any_python

CALLS = 300_000
MODES = ("run", "run -q", "profile")

PROGRAM = f"""\
import contextlib, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it; C programs do not

def leaf():
    pass

def recording():
    if sys.argv[1] == "plain":
        return contextlib.nullcontext()
    from vestige import profile
    return profile(output=sys.argv[1])

with recording():
    for _ in range({CALLS}):
        leaf()
print("done", flush=True)
sys.exit(3)
"""


def mount(kind, place):
    """Mounts a file system of at most 4 MiB at `place`; skips the test if this is impossible."""
    place.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    else:
        image = place.with_suffix(".img")
        image.touch()
        os.truncate(image, 4 << 20)
        if run_tool("mkfs.ext4", "-q", "-m", "0", str(image)) is not None:
            pytest.skip("no full disk here: no mkfs.ext4")
        command = ["mount", "-o", "loop", str(image), str(place)]
    complaint = run_tool(*command)
    if complaint is not None:
        pytest.skip(f"no full disk here: {complaint}")


def run_tool(*command):
    """Returns None, or the reason why the tool failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return None if done.returncode == 0 else done.stderr.strip() or f"{command[0]} failed"


@pytest.fixture(params=["limit", "tmpfs", "ext4"])
def room(request, tmp_path):
    """A folder with little room: either files may not grow, or the disk is small."""
    place = tmp_path / "small"
    if request.param == "limit":
        place.mkdir()
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, old[1]))
        yield place
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    else:
        mount(request.param, place)
        yield place
        assert run_tool("umount", str(place)) is None


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_cannot_grow_ends_the_recording_not_the_program(workplace, room, mode):
    workplace.write("program.py", PROGRAM)
    trace = room / "t.vst"
    plain = workplace.python("program.py", "plain")
    if mode == "profile":
        result = workplace.python("program.py", trace)
    else:
        result = workplace.vestige(*mode.split(), "-o", trace, "program.py", "plain")
    assert (plain.returncode, plain.stdout, plain.stderr) == (3, "done\n", "")
    assert (result.returncode, result.stdout) == (3, "done\n")

    facts = Trace(str(trace)).info()
    assert facts["lost"] > 0
    assert facts["records"] + facts["lost"] >= 2 * CALLS
    first, *report = result.stderr.splitlines()
    place = f"the recording in {trace}"
    assert first == f"vestige: {place}: {facts['lost']:,} records could not be kept; is the disk full?"
    assert bool(report) is (mode == "run")

    # Earlier records are in the file, and so is everything that could still be written.
    calls = {name.rpartition(": ")[2]: count for name, count, *_ in totals(Trace(str(trace)), all_windows=True)}
    assert 10_000 < calls["leaf"] < CALLS
    assert facts["records"] >= 2 * calls["leaf"]
    info = workplace.vestige("info", "--json", trace)
    assert json.loads(info.stdout)["lost"] == facts["lost"]
    report = workplace.vestige("report", trace)
    assert f"{facts['lost']:,} records could not be kept and are missing here" in report.stdout


def test_an_index_that_has_no_room_lives_in_memory(tmp_path):
    place = tmp_path / "small"
    mount("tmpfs", place)
    try:
        trace = str(record(place / "t.vst", steps(50)))
        with contextlib.suppress(OSError), open(place / "rest", "wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))
        info = View(trace).info()
        assert info["built"] and info["index_path"] is None and info["spans"] > 50
        assert not [name for name in os.listdir(place) if "view" in name]
        os.remove(place / "rest")
        assert View(trace).info()["index_path"] == trace + ".view"
    finally:
        assert run_tool("umount", str(place)) is None
