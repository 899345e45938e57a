"""`vestige run` compared with plain Python: the program must see and print the same, and leave a trace."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

from conftest import COMMAND
from traces import totals
from vestige import Trace

SHOW = """\
    import re, sys
    hidden = ("hidden", "re", "sys", "__builtins__", "__loader__")
    shown = {name: value for name, value in globals().items() if name not in hidden}
    print(re.sub(" at 0x[0-9a-f]+", "", str(shown)))
    print(list(globals())[:9])
    print(type(__builtins__), __loader__ if isinstance(__loader__, type) else type(__loader__))
    print(sys.argv, sys.path)
    print(sys.modules["__main__"].__dict__ is globals(), sys._getframe().f_code.co_filename)
    """


def names(workplace, file="t.vst"):
    return {name for name, *_ in totals(Trace(str(workplace.path / file)), all_windows=True)}


# ---- the program's surroundings ----------------------------------------


@pytest.mark.any_python
@pytest.mark.parametrize("path", ["show.py", "./show.py", "sub/../show.py", "link.py", "sub/linked.py"])
def test_a_script_finds_itself_as_without_us(workplace, same, path):
    workplace.write("show.py", SHOW)
    (workplace.path / "sub").mkdir()
    (workplace.path / "link.py").symlink_to("show.py")
    (workplace.path / "sub/linked.py").symlink_to(workplace.path / "show.py")
    same(path, "an argument")


def test_a_script_by_its_absolute_path_is_as_without_us(workplace, same):
    same(workplace.write("show.py", SHOW))


def test_a_module_is_as_with_python_m(workplace, same):
    workplace.write("package/__init__.py", "print('the package', __name__)")
    workplace.write("package/show.py", SHOW)
    same("-m", "package.show", "-m", "x")


def test_a_package_runs_its_main_module(workplace, same):
    workplace.write("package/__init__.py", "")
    workplace.write("package/__main__.py", SHOW)
    same("-m", "package")


def test_code_is_as_with_python_c(same):
    code = textwrap.dedent(SHOW)
    same("-c", code, "-c", "--force")


def test_code_may_be_glued_to_its_option(same):
    same("-cimport sys; print(sys.argv)", "x")


def test_a_program_from_stdin_is_as_without_us(same):
    same("-", "x", input=textwrap.dedent(SHOW))


@pytest.mark.parametrize("name", ["folder", "folder/", "./folder", "archive.zip"])
def test_a_folder_or_archive_with_a_main_module_runs(workplace, same, name):
    main = workplace.write("folder/__main__.py", SHOW)
    with zipfile.ZipFile(workplace.path / "archive.zip", "w") as archive:
        archive.write(main, "__main__.py")
    same(name, "x")


def test_the_current_folder_runs(workplace, same):
    workplace.write("__main__.py", SHOW)
    same(".")


def test_compiled_code_runs(workplace, same):
    workplace.write("show.py", SHOW)
    workplace.python("-c", "import py_compile; py_compile.compile('show.py', 'show.pyc')")
    same("show.pyc")


def test_the_scripts_options_are_its_own(workplace, same):
    workplace.write("show.py", "import sys; print(sys.argv)")
    same("show.py", "-o", "x", "--force", "-q", "--help", "-m", "json", "--", "-c", "")


def test_python_m_vestige_does_the_same(workplace):
    workplace.write("show.py", SHOW)
    plain = workplace.python("show.py", "x")
    traced = workplace.python("-m", "vestige", "run", "-q", "show.py", "x")
    assert (traced.stdout, traced.stderr, traced.returncode) == (plain.stdout, "", 0)


def test_a_safe_path_stays_safe(workplace, same):
    workplace.write("show.py", SHOW)
    same("show.py", env={**os.environ, "PYTHONSAFEPATH": "1"})


def test_modules_of_the_program_go_before_those_that_we_use(workplace, same):
    workplace.write("argparse.py", "here = True")
    workplace.write("vestigial.py", "import argparse; print(argparse.here)")
    same("vestigial.py")


def test_future_statements_of_ours_do_not_reach_the_program(workplace, same):
    workplace.write("show.py", "def f(x: undefined_name): pass\nprint(f.__annotations__)")
    assert "NameError" in same("show.py").stderr


def test_sources_in_other_encodings_run(workplace, same):
    (workplace.path / "latin.py").write_bytes("# coding: latin-1\nprint(ascii('é'))".encode("latin-1"))
    (workplace.path / "bom.py").write_bytes(b"\xef\xbb\xbfprint('bom')")
    same("latin.py")
    same("bom.py")


# ---- how it ends -------------------------------------------------------


@pytest.mark.any_python
@pytest.mark.parametrize("value", ["", "None", "0", "3", "-1", "True", "'a message'", "256", "(1, 2)", "2.5"])
def test_exit_values_are_kept(workplace, same, value):
    workplace.write("leave.py", f"import sys\nsys.exit({value})")
    same("leave.py")


def test_an_uncaught_exception_looks_as_without_us(workplace, same):
    workplace.write(
        "fail.py",
        """\
        def inner():
            {}["key"]

        def outer():
            try:
                inner()
            except KeyError as error:
                raise ValueError("from a cause") from error

        try:
            outer()
        except ValueError:
            int("in a context")
        """,
    )
    plain = same("fail.py")
    assert plain.returncode == 1
    assert plain.stderr.count("Traceback") == 3
    assert any("outer" in name for name in names(workplace))


def test_an_uncaught_exception_of_code_looks_as_without_us(same):
    same("-c", "def f():\n    1 / 0\n\nf()")


def test_an_uncaught_exception_of_a_module_looks_as_without_us(workplace, same):
    workplace.write("fail.py", "def f():\n    1 / 0\n\nf()")
    assert "runpy" in same("-m", "fail").stderr


def test_an_uncaught_exception_in_the_package_of_a_module_looks_as_without_us(workplace, same):
    workplace.write("package/__init__.py", "1 / 0")
    workplace.write("package/module.py", "")
    assert "runpy" in same("-m", "package.module").stderr


@pytest.mark.parametrize("name", ["folder", "archive.zip"])
def test_an_uncaught_exception_of_a_folder_or_archive_looks_as_without_us(workplace, same, name):
    main = workplace.write("folder/__main__.py", "1 / 0")
    with zipfile.ZipFile(workplace.path / "archive.zip", "w") as archive:
        archive.write(main, "__main__.py")
    assert "runpy" in same(name).stderr


def test_a_syntax_error_looks_as_without_us_and_leaves_no_trace(workplace, same):
    workplace.write("wrong.py", "x = = 1\n")
    assert "SyntaxError" in same("wrong.py").stderr
    assert not (workplace.path / "t.vst").exists()


def test_an_excepthook_of_the_program_gets_its_own_part_of_the_traceback(workplace, same):
    workplace.write(
        "hook.py",
        """\
        import sys, traceback
        print(sys.excepthook is sys.__excepthook__)

        def hook(kind, error, tb):
            print(kind, error, error.__traceback__ is tb)
            print(traceback.extract_tb(tb))

        sys.excepthook = hook
        1 / 0
        """,
    )
    same("hook.py")


def test_an_exception_in_a_thread_looks_as_without_us(workplace, same):
    workplace.write("thread.py", "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()")
    same("thread.py")


def test_exception_groups_and_odd_exceptions_are_shown(workplace, same):
    workplace.write("odd.py", "class Odd(BaseException): pass\nraise Odd('x')")
    same("odd.py")


@pytest.mark.parametrize("how", [["script"], ["-m"], ["-c"]])
def test_a_keyboard_interrupt_ends_the_process_by_its_signal(workplace, same, how):
    source = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
    workplace.write("wait.py", source)
    args = {"script": ["wait.py"], "-m": ["-m", "wait"], "-c": ["-c", source]}[how[0]]
    plain = same(*args)
    assert plain.returncode == -signal.SIGINT
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]


def test_a_caught_keyboard_interrupt_is_the_programs(workplace, same):
    workplace.write(
        "catch.py",
        """\
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        except KeyboardInterrupt:
            print("caught")
        """,
    )
    same("catch.py")


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os.abort()"])
def test_a_sudden_end_leaves_a_readable_trace(workplace, same, end):
    workplace.write("end.py", f"import os, signal\ndef work(): pass\nwork()\n{end}")
    same("end.py", stderr=False)
    assert any(name.endswith(": work") for name in names(workplace))
    assert not Trace(str(workplace.path / "t.vst")).info()["clean"]


def test_a_broken_pipe_of_the_program_is_its_own(workplace):
    workplace.write("pipe.py", "raise BrokenPipeError('mine')")
    result = workplace.trace("pipe.py")
    assert result.returncode == 1
    assert result.stderr.endswith("BrokenPipeError: mine\n")


# ---- until the very end ------------------------------------------------


def test_threads_and_atexit_functions_run_and_are_recorded(workplace, same):
    workplace.write(
        "late.py",
        """\
        import atexit, threading, time

        def late(): print("late")
        def first(): print("first"); late()
        def second(): print("second")
        def in_thread(): ended.wait(); time.sleep(0.1); print("thread")

        atexit.register(first)
        atexit.register(second)
        ended = threading.Event()
        threading.Thread(target=in_thread).start()
        print("end")
        ended.set()
        """,
    )
    same("late.py")
    found = " ".join(names(workplace))
    for name in (": first", ": second", ": late", ": in_thread", "function sleep"):
        assert name in found
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]


def test_nothing_of_ours_is_in_the_trace(workplace):
    workplace.write("work.py", "def work(): pass\nwork()")
    for command in (workplace.vestige, lambda *args: workplace.python("-m", "vestige", *args)):
        command("run", "-q", "-o", "t.vst", "--force", "work.py")
        found = names(workplace)
        assert "work.py(1): work" in found
        assert not [name for name in found if "vestige" in name or "runpy" in name]


def test_pickling_and_spawned_processes_find_main(workplace, same):
    workplace.write(
        "spawn.py",
        """\
        import multiprocessing, pickle

        class Thing: pass
        def double(x): return 2 * x

        if __name__ == "__main__":
            assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [1, 2, 3]))
        """,
    )
    same("spawn.py")
    same("-m", "spawn")


def test_a_forked_child_does_not_end_the_recording(workplace, same):
    workplace.write(
        "fork.py",
        """\
        import os, sys

        def after(): pass

        child = os.fork()
        if child == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        after()
        """,
    )
    same("fork.py")
    assert any(name.endswith(": after") for name in names(workplace))


def test_a_program_that_profiles_itself_is_told_that_a_recording_runs(workplace):
    workplace.write("nested.py", "import vestige\nwith vestige.profile(): pass")
    result = workplace.trace("nested.py")
    assert result.returncode == 1
    assert "RuntimeError: a recording is already running" in result.stderr.splitlines()[-1]


# ---- what we add -------------------------------------------------------


def test_the_report_is_on_stderr_and_its_last_line_says_what_to_do_next(workplace):
    work = "def work():\n    os.write(1, b'out\\n')\n    for _ in range(100_000): pass\n\nimport os; work()"
    workplace.write("work.py", work)  # all names are short, whatever takes long
    result = workplace.vestige("run", "-o", "a trace.vst", "work.py")
    assert (result.stdout, result.returncode) == ("out\n", 0)
    lines = result.stderr.splitlines()
    assert lines[0].endswith("calls, 1 thread")
    assert any("work.py:1: work" in line for line in lines)
    assert [line for line in lines[:-1] if len(line) > 80] == []
    command = lines[-1].partition("#")[0]
    assert command.strip() == "vestige export 'a trace.vst' -o 'a trace.json.gz'"
    assert "ui.perfetto.dev" in lines[-1]
    exported = subprocess.run(["sh", "-c", f"{sys.executable} -m {command}"], cwd=workplace.path)
    assert exported.returncode == 0
    assert (workplace.path / "a trace.json.gz").exists()


def test_the_report_comes_after_what_the_program_printed(workplace):
    workplace.write("work.py", "print('out')")
    result = workplace.vestige("run", "work.py", capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.stdout.startswith("out\n")


def test_quiet_prints_nothing(workplace):
    workplace.write("work.py", "pass")
    result = workplace.vestige("run", "-q", "work.py")
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("args", "stem"), [(["work.py"], "work"), (["-m", "work"], "work"), (["-c", "pass"], "command")]
)
def test_the_default_file_has_the_programs_name_and_pid(workplace, args, stem):
    workplace.write("work.py", "import os; print(os.getpid())")
    args = [arg.replace("pass", "import os; print(os.getpid())") for arg in args]
    pid = workplace.vestige("run", "-q", *args).stdout.strip()
    assert (workplace.path / f"{stem}.{pid}.vst").exists()


def test_the_trace_is_where_the_program_was_started(workplace):
    workplace.write("move.py", "import os; os.mkdir('sub'); os.chdir('sub')")
    result = workplace.vestige("run", "-o", "t.vst", "move.py")
    assert "vestige export t.vst" in result.stderr
    assert (workplace.path / "t.vst").exists()


def test_an_existing_file_is_not_overwritten_without_force(workplace):
    workplace.write("work.py", "print('ran')")
    (workplace.path / "t.vst").write_text("precious")
    result = workplace.vestige("run", "-o", "t.vst", "work.py")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "vestige: t.vst: already exists; --force overwrites it\n"
    assert (workplace.path / "t.vst").read_text() == "precious"
    assert workplace.vestige("run", "-o", "t.vst", "--force", "work.py").stdout == "ran\n"
    assert Trace(str(workplace.path / "t.vst")).info()["clean"]


def test_options_choose_what_is_recorded(workplace):
    workplace.write("helper.py", "def helped(): return len('x')")
    workplace.write("work.py", "import gc, helper\ndef work(x): return x + 1\nwork(41)\nhelper.helped()\ngc.collect()")
    workplace.trace("work.py")
    assert {"work.py(2): work", "helper.py(1): helped", "<built-in function len>", "Python GC"} <= names(workplace)
    workplace.trace("--no-c", "--no-gc", "--exclude", "helper.py", "work.py")
    found = names(workplace)
    assert "work.py(2): work" in found
    assert not {"helper.py(1): helped", "<built-in function len>", "Python GC"} & found
    workplace.trace("--include", "*/helper.py", "work.py")
    found = {name for name in names(workplace) if not name.startswith(("<built-in", "Python GC"))}
    assert found == {"helper.py(1): <module>", "helper.py(1): helped"}


def test_arguments_and_results_are_recorded_where_asked(workplace):
    workplace.write("work.py", "def work(x, y='z'): return x + 1\nwork(41)")
    workplace.trace("--record-args", "work", "work.py")
    workplace.vestige("export", "t.vst", "-o", "t.json")
    events = json.loads((workplace.path / "t.json").read_text())["traceEvents"]
    [call] = [event for event in events if event["name"] == "work.py(1): work"]
    assert call["args"]["arguments"] == {"x": "41", "y": "'z'"}
    assert call["args"]["return"] == "42"


def test_the_trace_says_where_it_comes_from(workplace):
    workplace.write("work.py", "pass")
    workplace.trace("work.py", 'a "quoted" argument')
    metadata = Trace(str(workplace.path / "t.vst")).metadata()
    assert json.loads(metadata["vestige.command"]) == ["work.py", 'a "quoted" argument']
    assert json.loads(metadata["host_name"]) == os.uname().nodename
    assert json.loads(metadata["vestige.python"]) == sys.version.split()[0]
    assert json.loads(metadata["vestige.process_name"]) == "work"


# ---- what goes wrong ---------------------------------------------------


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["absent.py"], "vestige: can't open file 'absent.py': No such file or directory"),
        ([], "vestige: nothing to run: give a script, -m module or -c code; see vestige run --help"),
        (["-m"], "vestige: -m needs the module to run"),
        (["-c"], "vestige: -c needs the code to run"),
        (["--unknown", "work.py"], "vestige: unrecognized arguments: --unknown; see vestige run --help"),
        (["-o"], "vestige: argument -o/--output: expected one argument; see vestige run --help"),
        (["-o", "no/such/t.vst", "work.py"], "vestige: no/such/t.vst: No such file or directory"),
        (["-o", ".", "work.py"], "vestige: .: already exists; --force overwrites it"),
        (["-o", ".", "--force", "work.py"], "vestige: .: Is a directory"),
    ],
)
def test_wrong_usage_is_one_line_and_the_program_does_not_run(workplace, args, message):
    workplace.write("work.py", "print('ran')")
    result = workplace.vestige("run", *args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message + "\n")


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("start", "kind"), [(b"\x7fELF\2\1\1\0", "machine code"), (b"MZ\0", "a binary file")], ids=["elf", "other"]
)
def test_a_binary_is_one_line_that_says_what_to_run_instead(workplace, start, kind):
    (workplace.path / "frozen").write_bytes(start)
    result = workplace.vestige("run", "./frozen", "--its-option")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"vestige: ./frozen is {kind}, not a Python script; name the Python script itself: vestige run script.py\n"
    )
    assert os.listdir(workplace.path) == ["frozen"]


def test_an_unknown_engine_is_one_line_that_lists_the_known(workplace):
    workplace.write("work.py", "print('ran')")
    result = workplace.vestige("run", "--engine", "steam", "work.py")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("vestige: no engine 'steam' on this Python: use one of auto, safe, ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["absent", "absent.module", "email", "..relative"])
def test_a_module_that_cannot_run_is_told_as_python_tells_it(workplace, same, module):
    assert same("-m", module).returncode == 1
    assert not (workplace.path / "t.vst").exists()


def test_a_folder_without_a_main_module_is_told_as_python_tells_it(workplace, same):
    (workplace.path / "empty").mkdir()
    same("empty")


def test_a_trace_that_cannot_be_written_on_does_not_touch_the_program(workplace):
    workplace.write("work.py", "import sys\nfor i in range(300_000): len('')\nprint('done')\nsys.exit(5)")
    limit = (
        "import os, resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (1 << 20, 1 << 20));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    result = workplace.python("-c", limit, COMMAND, "run", "-o", "t.vst", "work.py")
    assert (result.stdout, result.returncode) == ("done\n", 5)
    assert "could not be kept" in result.stderr


def test_closed_standard_streams_are_no_reason_to_fail(workplace):
    workplace.write("work.py", "import sys\nsys.stderr.close()\nsys.exit(4)")
    assert workplace.vestige("run", "work.py").returncode == 4
    workplace.write("work.py", "import os, sys\nos.close(2)\nsys.exit(4)")
    assert workplace.vestige("run", "work.py").returncode == 4


def test_a_long_running_program_can_be_interrupted_from_outside(workplace):
    workplace.write("wait.py", "import time\nprint('ready', flush=True)\ntime.sleep(30)")
    process = subprocess.Popen(
        [COMMAND, "run", "-o", "t.vst", "wait.py"],
        cwd=workplace.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert errors.splitlines()[-1].startswith("vestige export t.vst")
