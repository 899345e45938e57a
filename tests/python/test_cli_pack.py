"""`vestige pack`: a packed trace reads like the trace, and is smaller; packing never loses a file."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

import vestige
from conftest import COMMAND
from vestige._core import pack, unpack

pytestmark = pytest.mark.any_python

PROGRAMS = {
    "threads": """\
        import json, threading
        import vestige

        def work(number):
            with vestige.record_function("block", number=number):
                json.dumps([{"n": i, "text": str(i)} for i in range(200)], indent=1)
            vestige.counter("done", number)
            vestige.instant("here", number=number)

        threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """,
    "torn": """\
        import ctypes

        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        fib(15)
        ctypes.CDLL(None)._exit(0)
        """,
    "calls": """\
        def leaf():
            pass

        for _ in range(100_000):
            leaf()
        """,
}


@pytest.fixture(params=list(PROGRAMS))
def traced(workplace, request):
    workplace.write("work.py", PROGRAMS[request.param])
    assert workplace.trace("work.py").returncode == 0
    return workplace


@pytest.fixture
def small(workplace):
    """A small trace."""
    workplace.write("work.py", "def work(): pass\nfor _ in range(100): work()")
    assert workplace.trace("work.py").returncode == 0
    return workplace


def names(workplace):
    return sorted(path.name for path in workplace.path.iterdir())


def read(workplace, name="t.vst"):
    return (workplace.path / name).read_bytes()


def done(result):
    assert (result.stderr, result.returncode) == ("", 0)
    return result.stdout


# ---- what is packed is what was there ----------------------------------


def test_every_command_says_the_same_of_the_packed_file(traced):
    def everything():
        facts = json.loads(done(traced.vestige("info", "--json", "t.vst")))
        facts.pop("packed"), facts.pop("packed_bytes")
        report = done(traced.vestige("report", "t.vst"))
        assert traced.vestige("export", "t.vst", "-o", "t.json", "--force").returncode == 0
        done(traced.vestige("recover", "t.vst", "-o", "whole.vst", "--force"))
        return facts, report, read(traced, "t.json"), read(traced, "whole.vst")

    before = everything()
    done(traced.vestige("pack", "t.vst"))
    assert vestige.Trace(str(traced.path / "t.vst")).info()["packed"]
    assert everything() == before


def test_undone_it_is_the_same_file(traced):
    before = read(traced)
    done(traced.vestige("pack", "t.vst"))
    assert len(read(traced)) < len(before) / 2
    done(traced.vestige("pack", "--undo", "t.vst"))
    assert read(traced) == before


def test_a_record_takes_at_most_three_bytes(workplace):
    workplace.write("work.py", PROGRAMS["calls"])
    workplace.trace("work.py")
    records = vestige.Trace(str(workplace.path / "t.vst")).info()["records"]
    text = done(workplace.vestige("pack", "t.vst"))
    assert re.fullmatch(r"t\.vst: 1\.\d\d MiB → \d+(\.\d+)? KiB, \d\.\d bytes a record\n", text)
    assert len(read(workplace)) <= 3 * records


def test_info_tells_both_sizes(small):
    before = len(read(small))
    assert f"size     {before:,} bytes\n" in done(small.vestige("info", "t.vst"))
    done(small.vestige("pack", "t.vst"))
    assert f"size     {before:,} bytes, packed into {len(read(small)):,}\n" in done(small.vestige("info", "t.vst"))


def test_info_tells_where_a_packed_file_is_damaged(small):
    done(small.vestige("pack", "t.vst"))
    (small.path / "cut.vst").write_bytes(read(small)[:-1])
    facts = json.loads(done(small.vestige("info", "--json", "cut.vst")))
    assert (facts["clean"], facts["ended"], facts["damaged_at"]) == (False, "damaged", facts["bytes"])
    result = small.vestige("pack", "--undo", "cut.vst")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"vestige: cut.vst: the trace is damaged (at byte {facts['bytes']})\n"
    done(small.vestige("recover", "cut.vst", "-o", "whole.vst"))
    assert vestige.Trace(str(small.path / "whole.vst")).info()["clean"]


# ---- files -------------------------------------------------------------


def test_several_files_are_packed_and_those_that_cannot_be_are_told(small):
    shutil.copy(small.path / "t.vst", small.path / "u.vst")
    result = small.vestige("pack", "t.vst", "absent.vst", "work.py", "u.vst")
    assert result.returncode == 1
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["t.vst", "u.vst"]
    assert result.stderr == ("vestige: absent.vst: No such file or directory\nvestige: work.py: not a vestige trace\n")
    assert read(small, "t.vst") == read(small, "u.vst")
    assert names(small) == ["t.vst", "u.vst", "work.py"]


def test_what_is_packed_already_is_left_alone(small):
    assert done(small.vestige("pack", "--undo", "t.vst")) == "t.vst: not packed\n"
    done(small.vestige("pack", "t.vst"))
    before = read(small)
    assert done(small.vestige("pack", "t.vst")) == "t.vst: packed already\n"
    assert read(small) == before


def test_another_file_can_be_named(small):
    before = read(small)
    done(small.vestige("pack", "t.vst", "-o", "small.vst"))
    assert read(small) == before
    result = small.vestige("pack", "t.vst", "-o", "small.vst")
    assert (result.returncode, result.stderr) == (2, "vestige: small.vst: already exists; --force overwrites it\n")
    done(small.vestige("pack", "t.vst", "-o", "small.vst", "--force", "--level", "19"))
    done(small.vestige("pack", "--undo", "small.vst", "-o", "again.vst"))
    assert read(small, "again.vst") == before
    assert names(small) == ["again.vst", "small.vst", "t.vst", "work.py"]


def test_a_link_stays_a_link(small):
    (small.path / "link.vst").symlink_to("t.vst")
    done(small.vestige("pack", "link.vst"))
    assert (small.path / "link.vst").is_symlink()
    assert vestige.Trace(str(small.path / "t.vst")).info()["packed"]


def test_who_may_read_the_file_may_read_it_packed(small):
    (small.path / "t.vst").chmod(0o600)
    done(small.vestige("pack", "t.vst"))
    assert (small.path / "t.vst").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("state", ["recording", "stopped"])
def test_a_file_that_a_process_may_still_write_is_refused(workplace, state):
    program = "import sys\nfrom vestige import profile\nprof = profile(output='t.vst')\nprof.start()\n"
    program += "prof.stop()\n" if state == "stopped" else ""
    program += "print('ready', flush=True)\nsys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=workplace.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    before = (workplace.path / "t.vst").stat().st_ino
    result = workplace.vestige("pack", "t.vst")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"vestige: t.vst: process {process.pid} is still recording into this file; pack it after the recording has ended\n"
    )
    assert (workplace.path / "t.vst").stat().st_ino == before
    process.communicate()
    done(workplace.vestige("pack", "t.vst"))


# ---- what goes wrong ---------------------------------------------------


def test_a_file_that_may_not_grow_leaves_the_trace_as_it_was(workplace):
    workplace.write("work.py", PROGRAMS["calls"])
    workplace.trace("work.py")
    before = read(workplace)
    limit = (8192, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    result = workplace.vestige("pack", "t.vst", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "vestige: t.vst: File too large\n")
    assert read(workplace) == before
    assert names(workplace) == ["t.vst", "work.py"]


def test_a_full_disk_leaves_the_trace_as_it_was(workplace):
    workplace.write("work.py", PROGRAMS["calls"])
    workplace.trace("work.py")
    before = read(workplace)
    (workplace.path / "disk").mkdir()
    script = """\
        mount -t tmpfs -o size=$1 none disk || exit 77
        cp t.vst disk/ && cd disk && head -c $1 /dev/zero >filler 2>/dev/null
        "$0" pack t.vst
        echo "code $?, $(ls | tr '\\n' ' ')"
        cmp t.vst ../t.vst && rm filler && "$0" pack t.vst
        """
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    result = workplace._run(["unshare", "-rm", "sh", "-c", script, COMMAND, str(3 * len(before) + 2**20)])
    if result.returncode == 77 or result.stderr.startswith("unshare:"):
        pytest.skip("not permitted to mount")
    assert result.stderr == "vestige: t.vst: No space left on device\n"
    first, second = result.stdout.splitlines()
    assert first == "code 1, filler t.vst "
    assert second.startswith("t.vst: 1.")
    assert read(workplace) == before


def test_what_progress_raises_ends_it_and_leaves_nothing(small):
    def fail(share):
        assert 0 < share <= 1
        raise KeyboardInterrupt

    path = str(small.path / "t.vst")
    before = read(small)
    with pytest.raises(KeyboardInterrupt):
        pack(path, path, overwrite=True, progress=fail)
    assert read(small) == before
    assert names(small) == ["t.vst", "work.py"]


def test_the_functions_errors_are_pythons_own(small):
    path = str(small.path / "t.vst")
    with pytest.raises(FileExistsError) as caught:
        pack(path, path)
    assert (caught.value.filename, caught.value.filename2) == (path, path)
    with pytest.raises(FileNotFoundError):
        pack(path + "x", path + "y")
    with pytest.raises(vestige.TraceError, match="work.py: not a vestige trace"):
        pack(str(small.path / "work.py"), path + "y")
    with pytest.raises(vestige.TraceError, match="t.vst: not packed"):
        unpack(path, path + "y")
    for level in (-1, 0, 20):
        with pytest.raises(ValueError, match=f"level must be from 1 to 19, not {level}"):
            pack(path, path + "y", level=level)
    pack(path, path, overwrite=True, level=19)
    with pytest.raises(vestige.TraceError, match="t.vst: packed already"):
        pack(path, path + "y")
    assert names(small) == ["t.vst", "work.py"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "the following arguments are required: FILE; see vestige pack --help"),
        (["t.vst", "--level", "0"], "--level must be from 1 to 19, not 0"),
        (["t.vst", "--level", "20"], "--level must be from 1 to 19, not 20"),
        (["t.vst", "--level", "x"], "argument --level: invalid int value: 'x'; see vestige pack --help"),
        (["t.vst", "u.vst", "-o", "x.vst"], "-o is for one trace; several are packed in place"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(workplace, args, message):
    result = workplace.vestige("pack", *args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"vestige: {message}\n")


@pytest.mark.parametrize(
    ("output", "reason"), [("no/such/t.vst", "No such file or directory"), ("/dev/null/t.vst", "Not a directory")]
)
def test_packing_to_where_it_cannot_is_one_line(small, output, reason):
    result = small.vestige("pack", "t.vst", "-o", output)
    assert (result.returncode, result.stderr) == (1, f"vestige: {output}: {reason}\n")


def test_a_folder_that_may_not_be_written_leaves_the_trace_as_it_was(small):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    before = read(small)
    small.path.chmod(0o500)
    try:
        result = small.vestige("pack", "t.vst")
    finally:
        small.path.chmod(0o700)
    assert (result.returncode, result.stderr) == (1, "vestige: t.vst: Permission denied\n")
    assert read(small) == before
