"""Programs that end by os._exit, and programs that have closed their standard error: the recording is finished and
reported as at any end, and the program's exit code and files stay unchanged.
"""

import json
import os
import subprocess
import time

import pytest

from conftest import COMMAND
from traces import totals
from vestige import Trace

HINT = "vestige export t.vst -o t.json.gz"


def facts(workplace, file="t.vst"):
    trace = Trace(str(workplace.path / file))
    left = trace.metadata().get("vestige.exit")
    return trace.info()["clean"], json.loads(left) if left else None


def left_with(code):
    return True, {"by": "os._exit", "code": code}


@pytest.fixture(params=["safe", "turbo"])
def run(request, workplace):
    def run(source, *options, **more):
        workplace.write("end.py", source)
        return workplace.vestige("run", "--engine", request.param, *options, "-o", "t.vst", "end.py", **more)

    return run


# ---- os.exec* ------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ["os.execvp('echo', ['echo', 'after'])", "os.execlpe('echo', 'echo', 'after', os.environ)"]
)
def test_a_program_that_becomes_another_by_exec_is_told_of(run, workplace, call):
    done = run(f"import os\n{call}")
    assert (done.stdout, done.returncode) == ("after\n", 0)
    what = "became another program by os.exec*"
    assert (
        f"  ended    torn, the process {what}; everything up to that moment is here\n"
        in workplace.vestige("info", "t.vst").stdout
    )
    pid = Trace(str(workplace.path / "t.vst")).info()["pid"]
    assert (
        workplace.vestige("report", "t.vst").stdout.splitlines()[1] == f"process {pid} {what}; what was before is here"
    )


def test_the_program_after_an_exec_is_told_to_be_of_the_same_process(run, workplace):
    run("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(1)'])")
    assert ", after a program of this process that called os.exec*\n" in workplace.vestige("info", "t.vst").stdout
    assert workplace.vestige("report", "t.vst").stdout.count("became another program by os.exec*") == 1


def test_an_exec_that_failed_is_not_how_a_killed_program_ended(run, workplace):
    run(
        """
        import os, signal
        try: os.execv("/nonexistent", ["x"])
        except OSError: os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    what = "was killed, crashed or called os.exec*"
    assert (
        f"  ended    torn, the process {what}; everything up to that moment is here\n"
        in workplace.vestige("info", "t.vst").stdout
    )
    assert f" {what}; what was before is here\n" in workplace.vestige("report", "t.vst").stdout


# ---- os._exit ------------------------------------------------------------


def test_a_program_that_ends_by_os_exit_is_reported_as_any(run, workplace):
    result = run(
        """\
        import os, atexit
        atexit.register(print, "not printed")
        def work(): return sum(range(100_000))
        work()
        os.write(1, b"said\\n")
        os._exit(3)
        """
    )
    assert (result.returncode, result.stdout) == (3, "said\n")
    lines = result.stderr.splitlines()
    assert lines[0].endswith("calls, 1 thread")
    assert any("end.py" in line for line in lines[1:])
    assert lines[-1].startswith(HINT)
    assert facts(workplace) == left_with(3)
    assert "  ended    clean, by os._exit(3)\n" in workplace.vestige("info", "t.vst").stdout


def test_memory_of_a_program_that_ends_by_os_exit_is_reported_as_any(workplace):
    workplace.write("end.py", "import os\nos._exit(4)")
    result = workplace.vestige("memory", "-o", "t.vst", "end.py")
    assert result.returncode == 4
    assert result.stderr.splitlines()[-1] == "vestige memory-report t.vst"
    assert facts(workplace) == left_with(4)


def test_what_the_program_did_not_flush_stays_unsaid_as_without_us(run, workplace):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    assert run("import os\nprint('never')\nos._exit(0)", "-q", env=env).stdout == ""
    assert facts(workplace) == left_with(0)


@pytest.mark.parametrize(
    "source",
    [
        "from posix import _exit\n_exit(status=5)",
        "import os\nos._exit.__call__(5)",
        "import os, functools\nfunctools.partial(os._exit, 5)()",
        "import os\nclass Five:\n    def __index__(self): return 5\nos._exit(Five())",
        """\
        import os
        def deeper():
            try: deeper()
            except RecursionError: os._exit(5)
        deeper()
        """,
        """\
        import os, signal, time
        signal.signal(signal.SIGALRM, lambda *_: os._exit(5))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        while True: time.sleep(1)
        """,
        """\
        import os
        def leave(n):
            for i in range(n):
                try: os._exit("no code" if i < n - 1 else 5)
                except TypeError: pass
        leave(50)
        """,
        """\
        import os, threading
        for _ in range(8): threading.Thread(target=os._exit, args=(5,), daemon=True).start()
        threading.Event().wait()
        """,
    ],
)
def test_wherever_it_is_called_from_it_ends_the_recording(run, workplace, source):
    result = run(source)
    assert (result.returncode, result.stdout) == (5, "")
    assert result.stderr.splitlines()[-1].startswith(HINT)
    assert facts(workplace) == left_with(5)


def test_a_thread_may_end_the_process_while_the_main_thread_is_stuck_in_an_import(run, workplace):
    workplace.write("stuck.py", "import threading\nthreading.Event().wait()")
    source = """\
        import os, sys, threading
        sys.modules.pop("json", None)
        threading.Timer(0.2, os._exit, [6]).start()
        sys.path.insert(0, "shadow")
        import json
        """
    workplace.write("shadow/json.py", "import stuck")  # the report imports a module with this name
    result = run(source)
    assert result.returncode == 6
    assert result.stderr.splitlines()[-1].startswith(HINT)
    assert facts(workplace) == left_with(6)


def test_other_threads_do_not_go_on_while_the_report_is_made(run):
    result = run(
        """\
        import os, threading, time
        ended = []
        def count():
            while True:
                if ended and time.monotonic() - ended[0] > 0.1:
                    os.write(1, b"went on\\n")
                time.sleep(0.001)
        threading.Thread(target=count, daemon=True).start()
        time.sleep(0.05)
        ended.append(time.monotonic() + 0.2)
        os._exit(1)
        """
    )
    assert (result.returncode, result.stdout) == (1, "")


@pytest.mark.parametrize("options", [[], ["--no-children"]])
def test_a_forked_child_ends_itself_alone(run, workplace, options):
    result = run(
        """\
        import os
        def work(): pass
        for code in (7, 8):
            if os.fork() == 0:
                work()
                os._exit(code)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
            work()
        """,
        *options,
    )
    assert (result.returncode, result.stdout) == (0, "7\n8\n")
    assert result.stderr.count(HINT) == 1
    assert facts(workplace) == (True, None)
    children = [facts(workplace, path.name) for path in workplace.path.glob("t.*.vst")]
    codes = sorted(left["code"] for clean, left in children if clean)
    assert codes == ([] if options else [7, 8])


def test_children_of_multiprocessing_are_whole_and_have_their_names(run, workplace):
    result = run(
        """\
        import multiprocessing, sys
        def work(): pass
        if __name__ == "__main__":
            for way in ("fork", "spawn", "forkserver"):
                process = multiprocessing.get_context(way).Process(target=work, name=f"by {way}")
                process.start()
                process.join()
        """,
        "-q",
    )
    assert (result.returncode, result.stderr) == (0, "")
    found = {}
    for path in workplace.path.glob("t.*.vst"):
        trace = Trace(str(path))
        if any(name.endswith(": work") for name, *_ in totals(trace, all_windows=True)):
            found[json.loads(trace.metadata()["vestige.process_name"])] = trace.info()["clean"]
    assert found == {"by fork": True, "by spawn": True, "by forkserver": True}


def test_a_profile_in_a_program_of_its_own_is_finished_too(workplace):
    workplace.write(
        "own.py",
        """\
        import os, vestige
        def work(): pass
        prof = vestige.profile(output="t.vst")
        prof.start()
        work()
        os._exit(2)
        """,
    )
    result = workplace.python("own.py")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "")
    assert facts(workplace) == left_with(2)


def test_the_function_is_what_it_was(workplace, same):
    """While recording, the function acts as without vestige; afterwards the original function is back."""
    workplace.write(
        "show.py",
        """\
        import inspect, os, pickle, posix, sys
        before = hash(os._exit)
        print(os._exit, inspect.signature(os._exit), inspect.isbuiltin(os._exit), os._exit is posix._exit)
        print(pickle.loads(pickle.dumps(os._exit)) is os._exit, {os._exit: 1}[posix._exit], os._exit.__self__)
        for wrong in ((), (1, 2), ("1",), (1 << 40,)):
            try:
                os._exit(*wrong)
            except (TypeError, OverflowError) as error:
                print(type(error), error)
        import vestige
        if "record" in sys.argv:
            with vestige.profile():
                assert hash(os._exit) == before and os._exit == posix._exit
            assert hash(os._exit) == before
        """,
    )
    same("show.py")
    assert workplace.python("show.py", "record").returncode == 0


def test_a_full_pipe_that_a_thread_of_the_program_reads_does_not_stop_it(workplace):
    """The thread can never continue, so the report is given up, but the program ends."""
    workplace.write(
        "pipe.py",
        """\
        import fcntl, os, threading
        read, write = os.pipe()
        os.dup2(write, 2)
        os.set_blocking(write, False)
        try:
            while True: os.write(write, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(write, True)
        """,
    )
    workplace.write("end.py", "import os\nos._exit(9)")
    # Standard error is a pipe that nobody reads, from the beginning.
    start = f"exec(open('pipe.py').read())\nos.execv({COMMAND!r}, [{COMMAND!r}, 'run', '-o', 't.vst', 'end.py'])"
    before = time.monotonic()
    assert workplace.python("-c", start).returncode == 9
    assert time.monotonic() - before < 60
    assert facts(workplace) == left_with(9)


# ---- standard error ------------------------------------------------------

CLOSED = """\
import os, sys

class Watched:
    '''In place of the interpreter's own, whose failures at the end some versions take for the program's.'''
    encoding = "utf-8"
    def write(self, text): os.write(1, b"written\\n")
    def flush(self): os.write(1, b"flushed\\n")
    def fileno(self): return 2
    def isatty(self): return False

os.close(2)
sys.stderr = sys.__stderr__ = Watched()
"""


@pytest.mark.parametrize("command", ["run", "memory"])
@pytest.mark.parametrize("end", ["sys.exit(4)", "os._exit(4)"])
def test_a_closed_standard_error_is_not_touched(workplace, command, end):
    workplace.write("closed.py", CLOSED + end)
    result = workplace.vestige(command, "-o", "t.vst", "closed.py")
    plain = workplace.python("closed.py")
    assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout)
    assert plain.returncode == 4
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]


@pytest.mark.parametrize("end", ["sys.exit(4)", "os._exit(4)"])
def test_a_file_that_has_the_number_of_standard_error_is_not_written_to(workplace, end):
    workplace.write(
        "taken.py",
        f"""\
        import os, sys
        os.close(2)
        file = open("data.txt", "w")
        assert file.fileno() == 2
        file.write("mine")
        file.flush()
        {end}
        """,
    )
    assert workplace.vestige("run", "-o", "t.vst", "taken.py").returncode == 4
    assert (workplace.path / "data.txt").read_text() == "mine"
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]


def test_a_stream_that_is_closed_leaves_the_report_where_it_belongs(workplace):
    workplace.write("close.py", "import sys\nsys.stderr.close()\nsys.exit(4)")
    result = workplace.vestige("run", "-o", "t.vst", "close.py")
    assert result.returncode == 4
    assert result.stderr.splitlines()[-1].startswith(HINT)


def test_what_the_program_left_in_its_stream_comes_before_the_report(workplace):
    workplace.write("partial.py", "import sys\nsys.stderr.write('no end of line; ')")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    result = workplace.vestige("run", "-o", "t.vst", "partial.py", env=env)
    assert result.stderr.startswith("no end of line; ")
    assert HINT in result.stderr


def test_no_standard_error_from_the_beginning_is_no_reason_to_fail(workplace):
    workplace.write("work.py", "import os, sys\ntry:\n    os.write(2, b'x')\nexcept OSError:\n    sys.exit(4)")
    line = f"exec {COMMAND!r} run -o t.vst work.py 2>&-"
    assert subprocess.run(["sh", "-c", line], cwd=workplace.path).returncode == 4
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]
