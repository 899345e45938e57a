"""Execution traces without torch: scopes of record_function with their arguments, and the ends of processes."""

import os
import re
import signal
import threading

import pytest

from graphs import PROCESS, THREAD, attribute, named, nodes_of, one, read, rf_id, rf_ids, root_of, timeline_rf_ids
from vestige import ExecutionTraceObserver, Trace, profile, record_function


@pytest.fixture
def observer(tmp_path, monkeypatch):
    for name in list(os.environ):
        if "EXECUTION_TRACE" in name:
            monkeypatch.delenv(name)
    made = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    yield made
    made.cleanup()


def written(observer):
    observer.unregister_callback()
    nodes = nodes_of(observer.get_output_file_path())
    root_of(nodes)
    return nodes


def test_scopes_nest_and_have_the_values_they_were_given(observer):
    observer.start()
    with record_function("outer", "some text"):
        with record_function("inner", 1, True, 2.5, None, "text", [1, [2.5]], (3,), 10**30, {}, float("nan"), -(2**63)):
            pass
    nodes = written(observer)
    inner, outer = one(nodes, "inner"), one(nodes, "outer")
    assert inner["ctrl_deps"] == outer["id"] and outer["inputs"]["values"] == ["some text"]
    assert inner["inputs"]["values"] == [
        *(1, True, 2.5, "<None>", "text", [1, [2.5]], [3], "<int>", "<dict>", "nan", -(2**63))
    ]
    types = ["Int", "Bool", "Double", "None", "String", "GenericList[Int,GenericList[Double]]", "Tuple[Int]"]
    assert inner["inputs"]["types"][:7] == types and inner["inputs"]["types"][9:] == ["Double", "Int"]
    assert attribute(inner, "scope") == 7 and attribute(inner, "tid") == attribute(outer, "tid") > 0
    assert rf_id(inner) > rf_id(outer) >= 2**40


def test_arrays_are_tensors_and_views_share_their_storage(observer):
    numpy = pytest.importorskip("numpy")
    whole = numpy.zeros((4, 6), dtype=numpy.float32)
    part = whole[1:3, ::2]

    class Spoken:
        def __dlpack__(self):
            return whole.__dlpack__()

    observer.start()
    with record_function("arrays", whole, part, part.T, [whole, part], bytearray(5), Spoken()):
        pass
    node = one(written(observer), "arrays")
    values, shapes, strides = (node["inputs"][key] for key in ("values", "shapes", "strides"))
    storage = values[0][1]
    assert values[0][2:] == [0, 24, 4, "cpu"] and shapes[0] == [4, 6] and strides[0] == [6, 1]
    assert values[1][1:] == [storage, 6, 6, 4, "cpu"] and shapes[1] == [2, 3] and strides[1] == [6, 2]
    assert values[2][1] == storage and shapes[2] == [3, 2] and strides[2] == [2, 6]
    assert values[3] == [values[0], values[1]] and shapes[3] == [[4, 6], [2, 3]]
    assert values[4][1] != storage and values[4][3:] == [5, 1, "cpu"]
    assert values[5][1] == storage
    tensor = "Tensor(float)"
    assert node["inputs"]["types"][:4] == [tensor, tensor, tensor, f"GenericList[{tensor},{tensor}]"]


def test_an_array_that_raises_or_records_does_no_harm(observer):
    class Hostile:
        @property
        def __array_interface__(self):
            with record_function("inside"):
                pass
            raise SystemExit

        def __dlpack__(self):
            raise KeyboardInterrupt

    observer.start()
    with record_function("outside", Hostile(), 7):
        pass
    node = one(written(observer), "outside")
    assert node["inputs"]["values"][1] == 7 and re.fullmatch("<.*Hostile>", node["inputs"]["values"][0])


def test_each_thread_has_a_root_and_a_number(observer):
    observer.start()

    def work():
        with record_function("in a thread"):
            pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    work()
    nodes = written(observer)
    roots = {node["id"]: attribute(node, "tid") for node in named(nodes, THREAD)}
    assert len(set(roots.values())) == 4
    assert {node["ctrl_deps"] for node in named(nodes, "in a thread")} == set(roots)


def test_ids_are_the_timelines(observer, tmp_path):
    with profile(execution_trace_observer=observer) as prof:
        for index in range(5):
            with record_function("step", index):
                sorted([3, 1, 2])
    prof.export_chrome_trace(tmp_path / "timeline.json")
    nodes = nodes_of(observer.get_output_file_path())
    ids = rf_ids(nodes)
    assert len(set(ids)) == 5 and ids == timeline_rf_ids(tmp_path / "timeline.json")


def test_a_scope_that_was_open_before_is_no_node_and_one_that_stays_open_is(observer):
    early, late = record_function("early"), record_function("late")
    early.__enter__()
    observer.start()
    with record_function("between"):
        early.__exit__(None, None, None)
    late.__enter__()
    observer.stop()
    late.__exit__(None, None, None)
    nodes = written(observer)
    assert [node["name"] for node in nodes if node["name"] not in (PROCESS, THREAD)] == ["between", "late"]


def test_nothing_is_left_when_it_stops(observer):
    observer.start()
    observer.stop()
    from vestige import _core

    assert not _core.recording()
    with profile(with_stack=False) as prof, record_function("later"):
        pass
    assert "later" in [row.key for row in prof.key_averages()]
    assert named(written(observer), "later") == []


def test_one_that_recorded_nothing_is_written_while_a_profile_goes_on(observer, tmp_path):
    with profile(with_stack=False):
        assert [node["name"] for node in written(observer)] == [PROCESS]
        with record_function("later"):
            pass
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_child_of_a_recorded_program_can_observe(workplace):
    workplace.write(
        "p.py",
        """
        import os
        from vestige import profile, record_function
        with profile(with_stack=False):
            child = os.fork()
            if child == 0:
                from vestige import ExecutionTraceObserver
                observer = ExecutionTraceObserver().register_callback("child.json")
                observer.start()
                with record_function("alone"):
                    pass
                with profile(with_stack=False, execution_trace_observer=observer):
                    with record_function("in a profile"):
                        pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """,
    )
    done = workplace.python("p.py")
    assert done.returncode == 0, done.stderr
    nodes = nodes_of(workplace.path / "child.json")
    assert len(named(nodes, "alone")) == len(named(nodes, "in a profile")) == 1


def test_the_environment_attaches_one(workplace):
    workplace.write(
        "p.py",
        """
        from vestige import ExecutionTraceObserver, profile, record_function
        with profile() as prof:
            with record_function("scope"):
                pass
        print(prof.execution_trace_observer.get_output_file_path())
        with profile(execution_trace_observer=None) as second:
            assert second.execution_trace_observer is not None
        """,
    )
    environment = {**os.environ, "TMPDIR": str(workplace.path)}
    for name in ("VESTIGE_EXECUTION_TRACE", "ENABLE_PYTORCH_EXECUTION_TRACE"):
        done = workplace.python("p.py", env={**environment, name: "1"})
        path = done.stdout.strip()
        assert done.returncode == 0 and path.startswith(str(workplace.path)) and path.endswith(".et.json"), done.stderr
        assert one(nodes_of(path), "scope")


# ---- the process's ends ------------------------------------------------------

PROGRAM = """
import os, signal, sys
from vestige import ExecutionTraceObserver, profile, record_function

def work(count=20):
    with record_function("outer"):
        for index in range(count):
            with record_function("inner", index, "some text of a certain length", [1.5] * 10):
                pass

observer = ExecutionTraceObserver().register_callback("t.json")
observer.start()
work()
"""


def run(workplace, rest, code=0):
    path = workplace.write("p.py", "")
    path.write_text(PROGRAM + rest)
    done = workplace.python("p.py")
    assert done.returncode == code, done.stderr
    path.unlink()
    return done


def counted(path):
    nodes = nodes_of(path)
    root_of(nodes)
    return len(named(nodes, "inner"))


def test_a_killed_program_leaves_its_graph(workplace):
    run(workplace, "os.kill(os.getpid(), signal.SIGKILL)", code=-signal.SIGKILL)
    assert os.listdir(workplace.path) == ["t.json.vst"]
    done = workplace.vestige("export", "t.json.vst", "--to", "execution-trace", "-o", "et.json")
    assert done.returncode == 0, done.stderr
    assert counted(workplace.path / "et.json") == 20


def test_a_fork_and_an_exit_leave_the_file_to_who_made_it(workplace):
    """The child is not observed; the parent never stops the observer."""
    run(
        workplace,
        """
child = os.fork()
if child == 0:
    assert not observer.is_running() and not observer.is_registered
    observer.unregister_callback()
    work(1000)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
work(1)
""",
    )
    assert os.listdir(workplace.path) == ["t.json"]
    assert counted(workplace.path / "t.json") == 21


def test_a_full_disk_is_told_of_and_the_recording_stays(workplace):
    done = run(
        workplace,
        """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
work(1000)
observer.stop()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    observer.unregister_callback()
except OSError as error:
    print(error)
""",
    )
    assert "File too large" in done.stdout and "the recording is in t.json.vst: vestige export" in done.stdout
    assert os.listdir(workplace.path) == ["t.json.vst"]
    trace = Trace(str(workplace.path / "t.json.vst"))
    trace.export(str(workplace.path / "et.json"), all_windows=True, format="execution-trace")
    assert counted(workplace.path / "et.json") == 1020


@pytest.mark.any_python
def test_a_disk_that_is_full_while_recording_loses_records_and_says_so(workplace):
    done = run(
        workplace,
        """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = os.path.getsize("t.json.vst")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
work(100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
observer.unregister_callback()
""",
    )
    assert re.search(r"t\.json: [\d,]+ records could not be kept", done.stderr), done.stderr
    assert counted(workplace.path / "t.json") >= 20


def test_the_document_says_when_it_was_made(observer):
    observer.start()
    nodes = written(observer)
    document = read(observer.get_output_file_path())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", document["time"])
    assert document["pid"] == os.getpid() and document["start_ts"] <= document["finish_ts"]
    assert [node["name"] for node in nodes] == [PROCESS]
    assert document["schema"] == "1.1.1-chakra.0.0.4"
