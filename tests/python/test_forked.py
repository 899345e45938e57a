"""Forked children that are not recorded: their parent's profile does nothing in them, and they can record themselves."""

import pytest

HOWS = ["os", "multiprocessing", "thread", "C", "C that tells Python"]

PROGRAM = """
import ctypes, json, multiprocessing, os, sys, threading, traceback
import warnings
from vestige import profile

warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with several threads
how, engine = sys.argv[1:]
RESULT = 7

def before(): pass
def after_in_parent(): pass
def in_child(): pass

def child(check):
    code = 1
    try:
        check()
        code = RESULT
    except BaseException:
        traceback.print_exc()
    os._exit(code)

def fork(check, meanwhile=lambda: None):
    # The child checks when its parent has gone on for a while.
    reading, writing = os.pipe()

    def wait_and_check():
        os.read(reading, 1)
        check()

    def go_on(pid):
        meanwhile()
        os.write(writing, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == RESULT

    if how == "multiprocessing":
        process = multiprocessing.get_context("fork").Process(target=child, args=(wait_and_check,))
        process.start()
        meanwhile()
        os.write(writing, b"x")
        process.join()
        assert process.exitcode == RESULT
    elif how == "thread":
        def on_thread():
            pid = os.fork()
            if not pid:
                child(wait_and_check)
            pids.append(pid)
        pids = []
        thread = threading.Thread(target=on_thread)
        thread.start()
        thread.join()
        go_on(pids[0])
    else:
        tells = how == "C that tells Python"
        if tells:
            ctypes.pythonapi.PyOS_BeforeFork()
        pid = os.fork() if how == "os" else ctypes.PyDLL(None).fork()
        if tells:
            (ctypes.pythonapi.PyOS_AfterFork_Parent if pid else ctypes.pythonapi.PyOS_AfterFork_Child)()
        if not pid:
            child(wait_and_check)
        go_on(pid)

def names(prof):
    return [event.name.rpartition(" ")[2] for event in prof.events()]

def exported(prof):
    path = f"{os.getpid()}.json"
    prof.export_chrome_trace(path)
    with open(path) as file:
        return [event["name"] for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]

def check_own(prof):
    # It records this process, and nothing else.
    prof.start()
    in_child()
    prof.stop()
    found = names(prof)
    assert found.count("in_child") == 1 and "after_in_parent" not in found and "before" not in found, found

{body}
"""


@pytest.fixture
def run(workplace):
    def go(body, how, engine):
        source = PROGRAM.replace("{body}", body)
        done = workplace.python(workplace.write("program.py", source), how, engine)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return go


EMPTY = """
prof = profile(engine=engine)
with prof:
    before()

    def check():
        prof.add_metadata("key", "value")
        prof.step()
        assert names(prof) == [] and exported(prof) == [] and prof.snapshots == []
        prof.stop()
        assert names(prof) == [] and len(prof.key_averages()) == 0
        check_own(profile(engine=engine))
        assert names(prof) == []
        check_own(prof)
        fork(lambda: check_own(profile(engine=engine)))

        with profile(engine=engine) as own:
            # A fork of the child's, which records now.
            fork(lambda: (check_own(profile(engine=engine)), check_own(own)), in_child)
        assert names(own).count("in_child") == 1

    fork(check, after_in_parent)
found = names(prof)
assert found.count("before") == found.count("after_in_parent") == 1 and "in_child" not in found, found
print("done")
"""


@pytest.mark.parametrize("engine", ["turbo", "safe"])
@pytest.mark.parametrize("how", HOWS)
def test_a_profile_that_records_is_empty_in_a_child_and_can_begin_its_own(run, how, engine):
    assert run(EMPTY, how, engine) == "done\n"


STOPPED = """
prof = profile(engine=engine)
prof.start()
before()
prof.stop()

def go_on():
    prof.start()
    after_in_parent()
    prof.stop()

def check():
    found = names(prof)
    assert found.count("before") == 1 and "after_in_parent" not in found, found
    check_own(prof)

fork(check, go_on)
assert "after_in_parent" in names(prof)
print("done")
"""


@pytest.mark.parametrize("how", HOWS)
def test_a_profile_that_was_stopped_is_read_in_a_child_as_it_was_at_the_fork(run, how):
    assert run(STOPPED, how, "auto") == "done\n"


FILES = """
import atexit
prof = profile(output="t.vst", overwrite=True, engine=engine)
prof.start()
before()

def check():
    prof.finish()
    prof.start()
    in_child()
    prof.finish()
    atexit._run_exitfuncs()

fork(check, after_in_parent)
prof.finish()
print(*sorted(name.replace(str(os.getpid()), "parent") for name in os.listdir() if name.endswith(".vst")))
"""


@pytest.mark.parametrize("how", ["os", "C"])
def test_a_child_leaves_its_parents_file_alone_and_has_one_of_its_own(run, workplace, how):
    from traces import totals
    from vestige._core import Trace

    own, whole = run(FILES, how, "auto").split()
    assert whole == "t.vst" and own.split(".")[1].isdigit()
    shown = {name: " ".join(row[0] for row in totals(Trace(str(workplace.path / name)))) for name in (own, whole)}
    assert "after_in_parent" in shown[whole] and "in_child" not in shown[whole]
    assert "in_child" in shown[own] and "before" not in shown[own]
    assert Trace(str(workplace.path / whole)).info()["clean"]


MEMORY = """
from vestige import memory
memory.start()
kept = [bytes(1000) for _ in range(100)]

def check():
    assert not memory.is_tracing()
    memory.start()
    assert memory.is_tracing()
    memory.stop()

fork(check)
assert memory.is_tracing()
memory.stop()
print("done")
"""


@pytest.mark.parametrize("how", ["os", "C", "C that tells Python"])
def test_memory_is_recorded_anew_in_a_child(run, how):
    assert run(MEMORY, how, "auto") == "done\n"
