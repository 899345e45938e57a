"""Another program truncates the trace during the recording (`> t.vst`): the recording ends, the program does not
notice. A handler of SIGBUS that the program installs before or after ours gets all faults that are not ours.
"""

import pytest

from conftest import Workplace
from vestige import _core

LINE = "somebody else truncated the file, and recording ended there; at least "

# The beginning of the scenarios below. work() is enough to make the recorder write; foreign() raises a fault that is
# not vestige's.
HEAD = """\
    import faulthandler, mmap, os, resource, signal, sys, threading

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def leaf(i):
        return i + 1

    def work(count=40_000):
        for i in range(count):
            leaf(i)

    def cut(size=0):
        if os.path.exists("t.vst"):  # not without us
            os.truncate("t.vst", size)
        work()

    def foreign():
        with open("own", "wb") as file:
            file.truncate(4096)
        with open("own", "r+b") as file:
            memory = mmap.mmap(file.fileno(), 4096)
        os.truncate("own", 0)
        return memory[0]

    work()
"""

ALL = {
    "turbo": ["run", "--engine", "turbo"],
    "safe": ["run", "--engine", "safe"],
    "bounded": ["run", "--max-size", "2M"],
    "short": ["run", "--min-duration", "1us"],
    "memory": ["memory"],
}


def record(workplace, name, *options):
    """Runs a program under vestige. In place of the report, stderr must have the message about the trace."""
    command = options or ("run",)
    return workplace.vestige(*command, "-o", "t.vst", "--force", name)


def is_told(result):
    lines = [line for line in result.stderr.splitlines() if line.startswith("vestige: ")]
    return len(lines) == 1 and LINE in lines[0]


@pytest.mark.parametrize("size", (0, 5_000, 60_000))
@pytest.mark.parametrize("mode", ALL)
def test_a_truncated_trace_does_not_end_the_program(workplace, mode, size):
    if "turbo" in ALL[mode] and "turbo" not in _core.engines:
        pytest.skip("no turbo here")
    workplace.write(
        "p.py",
        HEAD
        + f"""
    cut({size})
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done")
    sys.exit(3)
    """,
    )
    result = record(workplace, "p.py", *ALL[mode])
    assert (result.returncode, result.stdout) == (3, "done\n"), result.stderr
    assert is_told(result), result.stderr
    assert (workplace.path / "t.vst").stat().st_size == size


SCENES = {
    # when faulthandler is installed, and whose fault comes: (the program's actions, options of Python)
    "faulthandler before, ours": ("cut()", "-X faulthandler"),
    "faulthandler after, ours": ("faulthandler.enable(); work(); cut()", ""),
    "faulthandler before, not ours": ("work(); foreign()", "-X faulthandler"),
    "faulthandler after, not ours": ("faulthandler.enable(); work(); foreign()", ""),
    "faulthandler after, both": ("faulthandler.enable(); work(); cut(); foreign()", ""),
    "faulthandler switched off, not ours": (
        "faulthandler.enable(); work(); faulthandler.disable(); work(); foreign()",
        "",
    ),
    "faulthandler switched off, sent": (
        "faulthandler.enable(); work(); faulthandler.disable(); os.kill(os.getpid(), signal.SIGBUS)",
        "",
    ),
    "faulthandler switched off, ours": ("faulthandler.enable(); work(); faulthandler.disable(); work(); cut()", ""),
    "a handler in Python, sent": (
        "signal.signal(signal.SIGBUS, lambda *_: print('handled')); work(); os.kill(os.getpid(), signal.SIGBUS); work()",
        "",
    ),
    "a handler in Python, ours": ("signal.signal(signal.SIGBUS, lambda *_: print('handled')); work(); cut()", ""),
    "the default, sent": ("os.kill(os.getpid(), signal.SIGBUS)", ""),
    "the default again, sent": (
        "signal.signal(signal.SIGBUS, signal.SIG_DFL); work(); os.kill(os.getpid(), signal.SIGBUS)",
        "",
    ),
    "the default, not ours": ("foreign()", ""),
    "ignored, sent": ("signal.signal(signal.SIGBUS, signal.SIG_IGN); work(); os.kill(os.getpid(), signal.SIGBUS)", ""),
    "ignored, not ours": ("signal.signal(signal.SIGBUS, signal.SIG_IGN); work(); foreign()", ""),
    "ignored, ours": ("signal.signal(signal.SIGBUS, signal.SIG_IGN); work(); cut()", ""),
    "a sleep is interrupted": (
        (
            "signal.signal(signal.SIGBUS, lambda *_: sys.exit('woken')); work(); "
            "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGBUS)).start(); threading.Event().wait(30)"
        ),
        "",
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_whoever_else_takes_the_signal_gets_what_is_not_ours(workplace, scene):
    body, option = SCENES[scene]
    workplace.write("p.py", HEAD + f"\n    {body}\n    print('done')\n")
    env = {"PYTHONFAULTHANDLER": "1"} if option else {}
    plain = workplace.python("p.py", env=env)
    traced = workplace.vestige("run", "-q", "-o", "t.vst", "p.py", env=env)
    assert traced.returncode == plain.returncode, traced.stderr
    assert traced.stdout == plain.stdout
    assert ("Bus error" in traced.stderr) == ("Bus error" in plain.stderr), traced.stderr
    if "ours" in scene and "not" not in scene:
        assert plain.stdout == "done\n"
        assert is_told(traced), traced.stderr


PROFILE = (
    HEAD
    + """
    import ctypes, struct
    from vestige import profile

    libc = ctypes.CDLL(None)

    def handler():
        action = (ctypes.c_char * 512)()
        libc.sigaction(int(signal.SIGBUS), None, action)
        function, mask, flags = struct.unpack_from("Q8s120xi", action)
        return function, mask, flags & ~0x4000000  # that libc set it, and how it returns
"""
)


def run_plain(workplace, body):
    workplace.write("p.py", PROFILE + body)
    result = workplace.python("p.py")
    assert result.returncode == 0, result.stderr
    return result


def test_the_signal_is_given_back_when_a_recording_stops(workplace):
    run_plain(
        workplace,
        """
    def check(*between):
        before = handler()
        prof = profile(with_stack=True, output="t.vst", overwrite=True)
        prof.start()
        during = handler()
        work()
        prof.stop()
        assert handler() == before != during
        prof.add_metadata("key", "value")
        prof.finish()
        assert handler() == before

    for _ in range(20):
        check()
    faulthandler.enable()
    for _ in range(20):
        check()
    signal.signal(signal.SIGBUS, lambda *_: None)
    check()

    # Who came while it was recorded stays, over and over.
    prof = profile(with_stack=True, output="t.vst", overwrite=True)
    for number in range(30):
        with profile(with_stack=True, output="t.vst", overwrite=True):
            signal.signal(signal.SIGBUS, signal.SIG_IGN)
            theirs = handler()
            work()
            assert handler() != theirs
        assert handler() == theirs
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
    """,
    )


def test_a_profile_goes_on_without_a_word_until_it_is_finished(workplace):
    result = run_plain(
        workplace,
        """
    from vestige import schedule

    with profile(with_stack=True, output="t.vst", schedule=schedule(wait=1, warmup=1, active=1)) as prof:
        for step in range(12):
            work(5000)
            if step == 5:
                cut()
            prof.step()
        prof.add_metadata("key", "value")
    with profile(with_stack=True, output="next.vst"):
        work()
    print("done")
    """,
    )
    assert result.stdout == "done\n"
    assert is_told(result), result.stderr
    assert _core.Trace(str(workplace.path / "next.vst")).info()["lost"] == 0


def test_hooks_are_gone_once_the_trace_is(workplace):
    run_plain(
        workplace,
        """
    from vestige import _core

    with profile(with_stack=True, output="t.vst") as prof:
        work()
        cut()
        assert not prof._session.recording
        assert _core.hooks_in_place() == 0
    """,
    )


def test_a_forked_child_and_its_parent_both_survive(workplace):
    workplace.write(
        "p.py",
        HEAD
        + """
    child = os.fork()
    if child == 0:
        work()
        [own] = [name for name in os.listdir() if name.startswith("t.") and name != "t.vst"]
        os.truncate(own, 0)
        work()
        print("child", flush=True)
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    cut()
    print("done")
    """,
    )
    result = record(workplace, "p.py")
    assert (result.returncode, result.stdout) == (0, "child\n5\ndone\n"), result.stderr


@pytest.mark.any_python
@pytest.mark.parametrize("size", (0, 100, 4_096, 5_000))
def test_every_command_has_one_line_for_what_is_left(tmp_path, size):
    workplace = Workplace(tmp_path)
    workplace.write("p.py", HEAD + f"\n    cut({size})\n")
    assert record(workplace, "p.py").returncode == 0
    commands = (
        ["info", "t.vst"],
        ["report", "t.vst"],
        ["memory-report", "t.vst"],
        ["export", "t.vst", "-o", "t.json"],
        ["diff", "t.vst", "t.vst"],
        ["recover", "t.vst", "-o", "r.vst"],
        ["pack", "t.vst"],
        ["view", "t.vst", "--html", "t.html"],
    )
    for command in commands:
        result = workplace.vestige(*command)
        assert "Traceback" not in result.stderr, command
        if result.returncode:
            assert result.returncode == 1, (command, result.stderr)
            [line] = result.stderr.splitlines()
            assert "t.vst" in line, (command, line)
        if size == 0:
            assert result.returncode == 1, command
