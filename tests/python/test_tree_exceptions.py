"""Calls that an exception ends are marked, wherever the exception is raised and caught."""

import subprocess
import sys
import threading

import pytest

from tree import calls, calls_of, expected, load, read, record, short, tree
from vestige import profile


def leaf():
    pass


def fails():
    raise KeyError("x")


def test_an_exception_marks_every_call_it_passes_through():
    def middle():
        fails()

    def outer():
        try:
            middle()
        except KeyError:
            leaf()

    assert tree(outer) == expected(
        """
        outer
          middle (raised)
            fails (raised)
          leaf
        """
    )


def test_an_exception_out_of_a_c_call_marks_it():
    def outer():
        try:
            len(3)
        except TypeError:
            pass
        try:
            [].index(1)
        except ValueError:
            pass

    assert tree(outer) == expected(
        """
        outer
          <len> (raised)
          <list.index> (raised)
        """
    )


@pytest.mark.safe_engine
def test_an_exception_through_a_c_call_marks_both_sides():
    def key(item):
        raise KeyError(item)

    def outer():
        try:
            sorted([2, 1], key=key)
        except KeyError:
            leaf()

    assert tree(outer) == expected(
        """
        outer
          <sorted> (raised)
            key (raised)
          leaf
        """
    )


def test_finally_except_and_else_run_inside_their_function():
    def careful():
        try:
            fails()
        finally:
            leaf()

    def outer():
        try:
            careful()
        except KeyError:
            leaf()
        else:
            fails()
        try:
            leaf()
        except KeyError:
            fails()
        else:
            leaf()

    assert tree(outer) == expected(
        """
        outer
          careful (raised)
            fails (raised)
            leaf
          leaf
          leaf
          leaf
        """
    )


def test_an_exception_raised_again_and_one_raised_from_another():
    def again():
        try:
            fails()
        except KeyError:
            raise

    def other():
        try:
            again()
        except KeyError as error:
            raise ValueError from error

    def outer():
        try:
            other()
        except ValueError:
            pass

    assert tree(outer) == expected(
        """
        outer
          other (raised)
            again (raised)
              fails (raised)
        """
    )


def test_a_context_manager_that_swallows_ends_the_exception_there():
    class Swallow:
        def __enter__(self):
            pass

        def __exit__(self, *exc):
            return True

    def outer():
        with Swallow():
            fails()
        leaf()

    assert tree(outer) == expected(
        """
        outer
          __enter__
          fails (raised)
          __exit__
          leaf
        """
    )


def test_an_exception_that_leaves_the_profile_block_is_the_programs():
    def outer():
        fails()

    with pytest.raises(KeyError, match="x"):
        with profile() as prof:
            outer()
    assert calls_of(load(prof), "MainThread") == expected(
        """
        outer (raised)
          fails (raised)
        """
    )


def test_sys_exit_inside_is_an_exception_like_others():
    def leaves():
        sys.exit(3)

    with pytest.raises(SystemExit) as info:
        with profile() as prof:
            leaves()
    assert info.value.code == 3
    assert calls_of(load(prof), "MainThread") == expected(
        """
        leaves (raised)
          <exit> (raised)
        """
    )


def test_an_uncaught_exception_in_a_thread_is_reported_as_without_us(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    def outer():
        thread = threading.Thread(target=fails, name="failing")
        thread.start()
        thread.join()

    trace = record(outer)
    assert seen == [KeyError]
    assert "fails (raised)" in calls_of(trace, "failing")


@pytest.mark.parametrize("ending", ["raise KeyError('gone')", "sys.exit(7)", "os.kill(os.getpid(), 15)", "os._exit(7)"])
def test_a_process_that_ends_inside_a_block_ends_as_without_us(ending, tmp_path):
    program = f"""
import os, sys
from vestige import profile
def work():
    {ending}
if "-t" in sys.argv:
    with profile():
        work()
else:
    work()
"""
    results = [
        subprocess.run([sys.executable, "-c", program, *flags], capture_output=True, text=True, cwd=tmp_path)
        for flags in ([], ["-t"])
    ]
    assert results[0].returncode == results[1].returncode != 0
    assert results[0].stderr.splitlines()[-1:] == results[1].stderr.splitlines()[-1:]
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_ends_without_stopping_still_finishes_its_file(tmp_path):
    program = """
import sys
from vestige import profile
def work():
    raise KeyError
prof = profile(output=sys.argv[1])
prof.start()
work()
"""
    path = tmp_path / "t.vst"
    subprocess.run([sys.executable, "-c", program, path], capture_output=True)
    import vestige

    trace = vestige.Trace(str(path))
    assert trace.info()["clean"]
    trace.export(str(tmp_path / "t.json"))
    spans = calls(read(tmp_path / "t.json"))
    assert [bool(s["args"].get("raised")) for s in spans if short(s["name"]) == "work"] == [True]


def test_a_signal_handlers_exception_lands_in_what_it_interrupted():
    import signal

    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    def busy():
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while True:
            leaf()

    def outer():
        before = signal.signal(signal.SIGALRM, handler)
        try:
            busy()
        except Stop:
            pass
        finally:
            signal.signal(signal.SIGALRM, before)

    spans = calls(record(outer))
    by_name = {short(span["name"]): span for span in spans}
    assert by_name["handler"]["args"].get("raised")
    assert by_name["busy"]["args"].get("raised")
