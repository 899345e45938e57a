"""vestige.memory, profile(profile_memory=True) and `vestige memory`, as users call them."""

import json
import os
import sys

import pytest

import vestige
from histories import History, history_of, is_ours
from traces import totals
from vestige import Trace, memory, profile

SIZE = 4321


@pytest.fixture(autouse=True)
def nothing_left_running():
    yield
    assert not memory.is_tracing()


# ---- vestige.memory ----------------------------------------------------------


def test_start_and_stop_record_between_them(tmp_path):
    path = tmp_path / "o.vst"
    before = bytearray(SIZE)
    memory.start(path)
    assert memory.is_tracing()
    during = bytearray(2 * SIZE)
    memory.stop()
    assert not memory.is_tracing()
    after = bytearray(3 * SIZE)
    history = history_of(path)
    assert history.trace.info()["clean"]
    assert not history.bytearrays(SIZE)
    assert len(history.bytearrays(2 * SIZE)) == 1
    assert not history.bytearrays(3 * SIZE)
    del before, during, after


def test_no_call_is_recorded(tmp_path):
    with memory.track(tmp_path / "o.vst"):
        json.dumps({"a": [1, 2]})
        assert sys.getprofile() is None
    trace = Trace(str(tmp_path / "o.vst"))
    assert totals(trace, all_windows=True) == []
    assert trace.metadata()["profile_memory"] == "1"
    assert "with_stack" not in trace.metadata()


def test_a_second_start_is_refused_and_the_first_goes_on(tmp_path):
    memory.start(tmp_path / "o.vst")
    with pytest.raises(RuntimeError, match="already: call vestige.memory.stop"):
        memory.start()
    kept = bytearray(SIZE)
    memory.stop()
    assert history_of(tmp_path / "o.vst").bytearrays(SIZE)
    del kept


def test_a_stop_without_a_start_is_refused():
    with pytest.raises(RuntimeError, match="call vestige.memory.start"):
        memory.stop()


def test_a_start_while_a_profile_records_is_refused(tmp_path):
    with profile(), pytest.raises(RuntimeError, match="already running in this process"):
        memory.start(tmp_path / "o.vst")
    assert not (tmp_path / "o.vst").exists()


def test_a_profile_while_memory_is_recorded_is_refused():
    memory.start()
    try:
        with pytest.raises(RuntimeError, match="already running in this process"):
            profile().start()
    finally:
        memory.stop()


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "o.vst"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        memory.start(path)
    assert path.read_text() == "mine"
    with memory.track(path, overwrite=True):
        pass
    assert history_of(path).trace.info()["clean"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sample": 0}, ValueError),
        ({"sample": "lots"}, ValueError),
        ({"sample": 1.5}, TypeError),
        ({"native": 1}, TypeError),
        ({"native_allocators": None}, TypeError),
        ({"max_size": 10}, ValueError),
        ({"children": True}, ValueError),
    ],
)
def test_bad_options_are_refused(options, error):
    with pytest.raises(error):
        memory.start(**options)


def test_track_has_no_other_options():
    with pytest.raises(TypeError, match="samples"):
        memory.track("o.vst", samples=3)


def test_track_ends_with_an_exception_too(tmp_path):
    with pytest.raises(KeyError), memory.track(tmp_path / "o.vst"):
        raise KeyError
    assert history_of(tmp_path / "o.vst").trace.info()["clean"]


def test_track_is_a_decorator(tmp_path):
    @memory.track(tmp_path / "o.vst", overwrite=True)
    def work(size):
        """Works."""
        return len(bytearray(size))

    assert work.__doc__ == "Works."
    assert work(SIZE) == SIZE
    assert work(2 * SIZE) == 2 * SIZE
    assert history_of(tmp_path / "o.vst").bytearrays(2 * SIZE)


def test_a_recording_of_samples_estimates_the_whole():
    memory.start(sample="8K", native_allocators=False)
    for _ in range(20_000):
        bytearray(1000)
    memory.stop()
    history = History(memory._last._session.trace())
    estimate = sum(event.size * event.weight for event in history.allocations)
    assert 0.8 < estimate / (20_000 * sys.getsizeof(bytearray(1000))) < 1.25
    assert len(history.allocations) < 6000


def test_an_export_without_a_recording_is_refused(workplace):
    done = workplace.python("-c", "from vestige import memory\nmemory.export_memory_history('o.json')")
    assert done.stderr.strip().splitlines()[-1].endswith("call vestige.memory.start() first")


def test_an_export_of_an_unknown_format_is_refused(tmp_path):
    with memory.track():
        pass
    with pytest.raises(ValueError, match="no format has this suffix; use one of .html, .pickle"):
        memory.export_memory_history(tmp_path / "o.txt")


@pytest.mark.parametrize("suffix", [".csv", ".json", ".folded", ".html", ".pickle"])
def test_a_history_is_exported_while_it_records_and_afterwards(tmp_path, suffix):
    memory.start()
    kept = bytearray(SIZE)
    memory.export_memory_history(tmp_path / f"one{suffix}")
    more = bytearray(2 * SIZE)
    memory.stop()
    memory.export_memory_history(tmp_path / f"two{suffix}")
    memory.export_memory_history(os.fsencode(tmp_path / f"three{suffix}"))
    one, two, three = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two", "three"))
    assert one
    assert len(two) == len(three) > 0
    del kept, more


def test_the_module_is_there_when_it_is_asked_for():
    assert vestige.memory is memory
    assert "memory" in dir(vestige)


# ---- profile(profile_memory=True) ----------------------------------------------


def allocate():
    return bytearray(SIZE)


def test_a_profile_records_calls_and_memory_together(tmp_path):
    with profile(profile_memory=True, output=tmp_path / "o.vst") as prof:
        assert memory.is_tracing()
        kept = allocate()
    assert prof.profile_memory
    trace = Trace(str(tmp_path / "o.vst"))
    history = History(trace)
    assert trace.metadata()["profile_memory"] == "1"
    assert any(name.endswith(": allocate") for name, *_ in totals(trace))
    [event] = history.bytearrays(SIZE)
    assert history.names(event)[0] == "allocate"
    del kept


def test_a_profile_records_no_memory_unless_asked():
    with profile() as prof:
        assert not memory.is_tracing()
        allocate()
    trace = prof._session.trace()
    assert "profile_memory" not in trace.metadata()
    assert len(trace.tables(["memory_events"])["memory_events"]) == 0


def test_a_profile_that_is_paused_records_no_memory():
    with profile(profile_memory=True) as prof:
        prof.toggle_collection_dynamic(False)
        assert not memory.is_tracing()
        bytearray(SIZE)
        prof.toggle_collection_dynamic(True)
        bytearray(2 * SIZE)
    history = History(prof._session.trace())
    assert not history.bytearrays(SIZE)
    assert history.bytearrays(2 * SIZE)


def test_functions_have_the_same_ids_in_calls_and_stacks(tmp_path):
    with profile(profile_memory=True, c_functions=False) as prof:
        allocate()
    trace = prof._session.trace()
    names = [name for name, *_ in totals(trace) if name.endswith(": allocate")]
    assert len(names) == 1


# ---- vestige memory --------------------------------------------------------------

PROGRAM = """
    import sys

    def leak():
        return [bytearray(4321) for _ in range(10)]

    kept = leak()
    print(len(kept), sys.argv[1:])
    """


def test_the_command_runs_a_script_and_tells_what_it_held(workplace):
    workplace.write("leaky.py", PROGRAM)
    done = workplace.vestige("memory", "-o", "m.vst", "leaky.py", "--its", "option")
    assert done.returncode == 0
    assert done.stdout == "10 ['--its', 'option']\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("peak ")
    assert " allocations" in lines[0]
    assert lines[1].startswith("resident at most ")
    assert "records in m.vst" in lines[2]
    assert lines[-1] == "vestige memory-report m.vst"
    assert all(len(line) <= 80 for line in lines)
    history = history_of(workplace.path / "m.vst")
    blocks = history.bytearrays(4321)
    assert len(blocks) == 10
    stack = [(frame.function.rpartition(".")[2], frame.line) for frame in history.frames(blocks[0])]
    assert stack[-2:] == [("leak", 5), ("<module>", 7)]
    assert len(history.frames(blocks[0])) <= 3  # comprehensions have a frame on some versions
    assert not any(is_ours(frame.file) for event in history.allocations for frame in history.frames(event))


@pytest.mark.parametrize("how", [["-m", "leaky"], ["-c", "import leaky"]])
def test_the_command_runs_modules_and_code(workplace, how):
    workplace.write("leaky.py", PROGRAM)
    done = workplace.vestige("memory", "-q", "-o", "m.vst", *how, "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "10 ['x']\n"
    assert len(history_of(workplace.path / "m.vst").bytearrays(4321)) == 10


def test_the_command_names_its_file_after_the_program(workplace):
    workplace.write("leaky.py", PROGRAM)
    done = workplace.vestige("memory", "leaky.py")
    [file] = workplace.path.glob("leaky.*.vst")
    assert f"vestige memory-report {file.name}" in done.stderr


def test_the_command_ends_as_the_program_does(workplace):
    workplace.write("ends.py", "import sys\nsys.exit(7)\n")
    assert workplace.vestige("memory", "-q", "ends.py").returncode == 7
    workplace.write("raises.py", "def f():\n    raise KeyError('x')\nf()\n")
    done = workplace.vestige("memory", "-q", "raises.py")
    plain = workplace.python("raises.py")
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["--sample", "lots", "x.py"], "--sample: not a size"),
        (["--max-size", "1", "x.py"], "--max-size must be at least 1M"),
        (["--last", "soon", "x.py"], "--last: not a time"),
        (["--natives", "x.py"], "--natives"),
        (["missing.py"], "can't open file 'missing.py'"),
    ],
)
def test_wrong_usage_is_one_line(workplace, words, message):
    workplace.write("x.py", "")
    done = workplace.vestige("memory", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_keeps_an_existing_file(workplace):
    workplace.write("leaky.py", PROGRAM)
    (workplace.path / "m.vst").write_text("mine")
    done = workplace.vestige("memory", "-o", "m.vst", "leaky.py")
    assert done.returncode == 2
    assert (workplace.path / "m.vst").read_text() == "mine"
    assert workplace.vestige("memory", "-q", "--force", "-o", "m.vst", "leaky.py").returncode == 0


FAMILY = """
    import os, subprocess, sys

    class Kept:
        blocks = [bytearray(4321)]

    pid = os.fork()
    if pid == 0:
        Kept.blocks.append(bytearray(5432))
        sys.exit(0)
    os.waitpid(pid, 0)
    subprocess.run([sys.executable, "-c", "kept = bytearray(6543)"], check=True)
    """


def test_children_are_recorded_with_the_program(workplace):
    workplace.write("parent.py", FAMILY)
    done = workplace.vestige("memory", "-o", "m.vst", "parent.py")
    assert done.returncode == 0
    assert "and 2 child processes:" in done.stderr
    histories = [history_of(path) for path in sorted(workplace.path.glob("m*.vst"))]
    assert len(histories) == 3
    for size in (4321, 5432, 6543):
        assert sorted(len(history.bytearrays(size)) for history in histories) == [0, 0, 1]
    for history in histories:
        assert history.trace.metadata()["profile_memory"] == "1"
        assert history.trace.info()["clean"]


def test_children_are_left_out_if_asked(workplace):
    workplace.write("parent.py", FAMILY)
    assert workplace.vestige("memory", "-q", "--no-children", "-o", "m.vst", "parent.py").returncode == 0
    assert [path.name for path in workplace.path.glob("*.vst")] == ["m.vst"]
    assert not history_of(workplace.path / "m.vst").bytearrays(5432)
