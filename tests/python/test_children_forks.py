"""profile(children=True), and forks at difficult moments: no process hangs, and no record is doubled, lost or put into
another process's file.
"""

import os
import textwrap

import pytest

from family import counted, family, traced, write_programs

HEAD = """
    import ctypes, gc, os, signal, subprocess, sys, threading, time, warnings
    import vestige
    from vestige import profile, record_function
    from counted import step, work

    warnings.simplefilter("ignore")  # of forks beside threads

    def wait(child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def in_child(function, *args):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                function(*args)
                code = 0
            except BaseException as error:
                print("in child:", repr(error), flush=True)
            finally:
                os._exit(code)
        assert wait(child) == 0

    def variables():
        names = ("VESTIGE_CHILDREN", "VESTIGE_PARENT", "PYTHONPATH")
        return {name: os.environ.get(name) for name in names}

    before = variables()
    """


@pytest.fixture
def run(workplace):
    """Runs code with plain Python; the code's recording goes to t.vst."""

    def run(code, **options):
        write_programs(workplace)
        workplace.write("main.py", textwrap.dedent(HEAD) + textwrap.dedent(code))
        result = workplace.python("main.py", **options)
        assert (result.stderr, result.stdout, result.returncode) == ("", "", 0)
        return family(workplace.path)

    return run


def agree(workplace, root, others, besides=()):
    says = counted(workplace.path)
    assert traced(root, others) == {pid: times for pid, times in says.items() if pid not in besides}


# ---- the block -----------------------------------------------------------


def test_children_of_a_block_are_recorded_and_none_after_it(run, workplace):
    root, others = run(
        """
        with profile(output="t.vst", children=True):
            work(2)
            in_child(work, 3)
            subprocess.run([sys.executable, "child.py", "4"], check=True)
        assert variables() == before
        in_child(step)
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        """
    )
    agree(workplace, root, others)
    assert sorted(file.steps for file in others) == [3, 4]


def test_without_children_a_block_has_none(run, workplace):
    root, others = run(
        """
        with profile(output="t.vst"):
            assert variables() == before
            work(2)
            in_child(work, 3)
            subprocess.run([sys.executable, "child.py", "4"], check=True)
            work(2)
        """
    )
    assert (root.steps, others) == (4, [])


def test_children_need_a_file_to_be_named_after(run, workplace):
    workplace.write("t.vst", "")
    write_programs(workplace)
    result = workplace.python("-c", "from vestige import profile\nprofile(children=True)")
    assert result.stderr.splitlines()[-1] == "ValueError: children=True needs an output: their files are named after it"
    result = workplace.python("-c", "from vestige import profile\nprofile(output='t', children=1)")
    assert result.stderr.splitlines()[-1] == "TypeError: children must be True or False, not int"


def test_what_the_program_changes_in_the_environment_stays(run):
    run(
        """
        os.environ["PYTHONPATH"] = "a"
        with profile(output="t.vst", children=True):
            os.environ["PYTHONPATH"] = "b" + os.pathsep + os.environ["PYTHONPATH"]
            os.environ["VESTIGE_PARENT"] = "mine"
        assert variables() == {"VESTIGE_CHILDREN": None, "VESTIGE_PARENT": "mine", "PYTHONPATH": "b:a"}
        """
    )


def test_a_failed_start_and_a_forgotten_profile_leave_the_environment_alone(run):
    run(
        """
        prof = profile(output="t.vst", children=True)
        prof.start()
        second = profile(output="u.vst", children=True)
        during = variables()
        for wrong in (second, profile(output="missing/t.vst", children=True)):
            try:
                wrong.start()
                assert False
            except (RuntimeError, OSError):
                assert variables() == during
        prof.finish()
        assert variables() == before
        forgotten = profile(output="v.vst", children=True)
        forgotten.start()
        del forgotten
        assert variables() == before
        in_child(step)
        """
    )


def test_windows_of_one_recording_each_have_their_children(run, workplace):
    root, others = run(
        """
        prof = profile(output="t.vst", children=True)
        for times in (1, 2):
            prof.start()
            in_child(work, times)
            prof.stop()
            in_child(step)
        prof.start()
        prof.toggle_collection_dynamic(False)
        in_child(step)
        prof.toggle_collection_dynamic(True)
        in_child(work, 3)
        prof.finish()
        """
    )
    agree(workplace, root, others)
    assert sorted(file.steps for file in others) == [1, 2, 3]


# ---- the parent's profile in a child --------------------------------------


@pytest.mark.parametrize("children", [True, False])
@pytest.mark.parametrize("use", ["prof.stop()", "prof.finish()", "prof.__exit__(None, None, None)"])
def test_a_child_that_ends_the_profile_ends_its_own_recording(run, use, children):
    root, others = run(
        f"""
        def leave():
            work(3)
            {use}
            step()

        prof = profile(output="t.vst", children={children})
        prof.start()
        work(1)
        in_child(leave)
        work(1)
        prof.finish()
        """
    )
    assert (root.steps, root.clean) == (2, True)
    assert [(file.steps, file.clean) for file in others] == ([(3, True)] if children else [])


def test_a_block_may_be_left_in_the_child(run, workplace):
    root, others = run(
        """
        with profile(output="t.vst", children=True) as prof:
            child = os.fork()
            work(3)
        step()
        if child:
            assert wait(child) == 0
        """
    )
    agree(workplace, root, others)
    assert [file.clean for file in others] == [True]


def test_a_child_goes_on_with_the_profile_as_its_own(run):
    root, [child] = run(
        """
        def go_on():
            step()
            prof.stop()
            work(5)
            prof.start()
            step()
            prof.add_metadata("in", "child")
            prof.stop()
            prof.export_chrome_trace("child.json")
            assert open("child.json").read().count(": step\\"") == 2

        with profile(output="t.vst", children=True) as prof:
            prof.add_metadata("from", "parent")
            in_child(go_on)
        """
    )
    assert (root.steps, child.steps) == (0, 2)
    assert (child.metadata["in"], "in" in root.metadata) == ("child", False)


def test_a_span_that_is_open_at_the_fork_is_the_parent_s(run):
    root, [child] = run(
        """
        span = record_function("across")
        with profile(output="t.vst", children=True):
            with span:
                child = os.fork()
                with record_function("inside"):
                    step()
            if child:
                assert wait(child) == 0
        """
    )
    assert (root.calls["across"], root.calls["inside"]) == (1, 1)
    assert (child.calls.get("across", 0), child.calls["inside"]) == (0, 1)


# ---- awkward places ------------------------------------------------------


def test_a_fork_inside_a_hook(run, workplace):
    """repr() of a recorded argument is the program's code; so is a callback of the collector."""
    root, others = run(
        """
        class Forks:
            def __repr__(self):
                in_child(work, 2)
                return "forks"

        def give(value):
            return value

        def on_gc(phase, info):
            in_child(work, 3)

        with profile(output="t.vst", children=True, record_args=["give"]):
            give(Forks())
            step()
            gc.callbacks.insert(0, on_gc)
            gc.collect()
            gc.callbacks.remove(on_gc)
            step()
        """
    )
    assert root.steps == 2
    # Inside a hook, the interpreter reports no calls, neither in a child nor in its parent.
    assert sorted(file.steps for file in others) == [0, 0, 3, 3]


@pytest.mark.safe_engine
def test_a_child_that_comes_back_from_a_hook_goes_on_being_recorded(run):
    root, others = run(
        """
        class Forks:
            def __repr__(self):
                child = os.fork()
                if child:
                    children.append(child)
                else:
                    children.clear()
                return "forks"

        def give(value):
            step()
            return value

        children = []
        with profile(output="t.vst", children=True, record_args=["give"]):
            give(Forks())
            step()
        for child in children:
            assert wait(child) == 0
        """
    )
    # The first child was forked where the call begins; its own child, and the second child, where the call ends.
    assert (root.steps, sorted(file.steps for file in others)) == (2, [1, 1, 2])
    for file in [root, *others]:
        assert [calls for name, calls in file.calls.items() if name.endswith(": give")] == [1]
        assert file.clean


def test_forks_beside_threads_that_record(run, workplace):
    root, others = run(
        """
        done = False
        total = []

        def spin():
            times = 0
            while not done:
                step()
                times += 1
            total.append(times)

        with profile(output="t.vst", children=True):
            threads = [threading.Thread(target=spin) for _ in range(3)]
            for thread in threads: thread.start()
            for _ in range(8):
                in_child(work, 5)
            done = True
            for thread in threads: thread.join()
        os.write(os.open("counts", os.O_WRONLY | os.O_APPEND), f"{os.getpid()} {sum(total)}\\n".encode())
        """
    )
    agree(workplace, root, others)
    assert len(others) == 8
    assert all(len(file.threads) == 1 for file in others)


def test_a_child_forked_by_c_is_not_recorded(run, workplace):
    root, others = run(
        """
        libc = ctypes.PyDLL(None)
        with profile(output="t.vst", children=True):
            child = libc.fork()
            if child == 0:
                work(3)
                libc._exit(0)
            assert wait(child) == 0
            work(1)
        """
    )
    assert (root.steps, others) == (1, [])


def test_a_fork_in_a_child_forked_by_c_is_followed(run):
    root, [grandchild] = run(
        """
        libc = ctypes.PyDLL(None)
        with profile(output="t.vst", children=True):
            child = libc.fork()
            if child == 0:
                in_child(work, 3)
                libc._exit(0)
            assert wait(child) == 0
            work(1)
        """
    )
    assert (root.steps, grandchild.steps) == (1, 3)
    assert (grandchild.parent["pid"], grandchild.parent["tid"]) == (root.pid, None)


# Python code that prepares a child: the whole code, or one function if the extension does the rest.
@pytest.mark.parametrize(
    ("function", "options"), [("_record", ", on_trace_ready=print"), ("_expect_multiprocessing", "")]
)
def test_what_a_signal_handler_raises_while_a_child_is_prepared_reaches_the_program(run, function, options):
    _, [child] = run(
        f"""
        class Alarm(Exception): pass

        def ring(*_):
            raise Alarm

        def ringing(*args):
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGUSR1)
            return original(*args)

        from vestige.recording import children

        parent = os.getpid()
        signal.signal(signal.SIGUSR1, ring)
        original, children.{function} = children.{function}, ringing
        prof = profile(output="t.vst", children=True{options})
        prof.start()
        import multiprocessing.util
        try:
            child = os.fork()
            step()
        except Alarm:
            os._exit(7)
        assert wait(child) == 7
        prof.on_trace_ready = None
        prof.stop()
        prof.finish()
        """
    )
    assert child.steps == 0


def test_a_greenlet_that_forks(run, workplace):
    pytest.importorskip("greenlet")
    root, others = run(
        """
        import greenlet

        def inner():
            in_child(work, 3)
            work(1)

        with profile(output="t.vst", children=True):
            greenlet.greenlet(inner).switch()
            in_child(work, 2)
        """
    )
    agree(workplace, root, others)


def test_a_child_of_a_short_start_and_stop_elsewhere(run, workplace):
    """Other threads start and stop recordings while this thread forks."""
    write_programs(workplace)
    workplace.write(
        "main.py",
        textwrap.dedent(HEAD)
        + textwrap.dedent(
            """
            done = False

            def toggle():
                number = 0
                while not done:
                    number += 1
                    with profile(output=f"w{number}.vst", children=True):
                        step()

            thread = threading.Thread(target=toggle)
            thread.start()
            try:
                for _ in range(30):
                    in_child(step)
            finally:
                done = True
                thread.join()
            in_child(gc.isenabled)
            """
        ),
    )
    result = workplace.python("main.py")
    assert (result.stderr, result.stdout, result.returncode) == ("", "", 0)


def test_a_full_disk_leaves_the_child_unrecorded(run, workplace):
    root, others = run(
        """
        import resource

        def child():
            work(2)
            prof.stop()

        with profile(output="t.vst", children=True) as prof:
            work(1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            in_child(child)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            work(1)
        """
    )
    assert (root.steps, others) == (2, [])


def test_a_child_that_closes_all_descriptors_keeps_its_own_files(run, workplace):
    root, [child] = run(
        """
        def daemon():
            os.closerange(3, 100)
            files = [open(f"own{number}", "wb", buffering=0) for number in range(8)]
            for file in files:
                file.write(b"own")
            for _ in range(50000):
                step()
            prof.finish()

        with profile(output="t.vst", children=True) as prof:
            in_child(daemon)
            work(1)
        """
    )
    assert [path.read_bytes() for path in sorted(workplace.path.glob("own*"))] == [b"own"] * 8
    assert 0 < child.steps < 50000
    assert child.info["lost"] > 0
    assert (root.steps, root.clean) == (1, True)


def test_children_do_not_keep_the_parent_s_file_from_being_finished(run):
    root, [child] = run(
        """
        ready, tell = os.pipe()
        with profile(output="t.vst", children=True):
            pid = os.fork()
            if pid == 0:
                os.write(tell, b"x")
                signal.pause()
            os.read(ready, 1)
        os.kill(pid, signal.SIGKILL)
        wait(pid)
        """
    )
    assert (root.clean, child.clean) == (True, False)
    assert os.path.getsize(root.path) < 200_000
