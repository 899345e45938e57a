"""vestige checks its knowledge of the interpreter's internals before it uses them: if something has moved, the affected
part falls back, and `vestige info` says why.
"""

import json
import sys

import pytest

from other_builds import HERE
from vestige import _core

FACTS = list(_core.inside()["facts"])
SAFE = _core.engines[0]
MONITORS = sys.version_info >= (3, 12)
OF_FRAMES = ("sizes", "thread", "frame object", "running frame", "frame")
ENTRIES = ("entries",) if sys.version_info[:2] == (3, 11) else ()
UNSEEN = "array operators" if sys.version_info >= (3, 12) else "callables"  # what the safe engine needs thunks for
READS_FRAMES = ("turbo", *ENTRIES, "tracebacks", "memory", "arguments", "tasks", "bottom")
SHIFTS = (8, 16, 24, 64, -8, -16, -24, -64)

# Which parts need which fact; the safe engine needs frames until 3.11.
NEED = {
    **{fact: READS_FRAMES for fact in OF_FRAMES},
    "version": (*READS_FRAMES, "collector"),
    "extras": ("recording", "turbo"),
    "coroutine": ("tasks",),
    "recursion": ("bottom", *ENTRIES),
    "calls": ENTRIES,
    "callables": ("turbo",),
    "instructions": ("turbo",),
    "collector": ("collector",),
    "wrappers": ("turbo",),
    "functions": ("turbo", "exits"),
}


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    _core.check_inside()


# Without the GIL each thread counts its young objects.
ELSEWHERE = {"collector"} if HERE["nogil"] else set()


def fallen():
    return {part for part, why in _core.inside()["parts"].items() if why} - ELSEWHERE


def test_everything_is_where_it_must_be_on_this_python():
    inside = _core.inside()
    assert inside == _core.check_inside()
    assert {fact for fact, holds in inside["facts"].items() if not holds} == ELSEWHERE
    assert fallen() == set()
    assert inside["built_on"].split(".")[:2] == sys.version.split(".")[:2]


def test_the_check_finds_the_same_however_deep_it_is_asked_for():
    def ask(depth):
        return ask(depth - 1) if depth else _core.check_inside()

    assert ask(100) == _core.inside()
    assert next(_core.check_inside() for _ in [0]) == _core.inside()
    assert sorted([1, 2], key=lambda one: len(_core.check_inside()["facts"])) == [1, 2]
    assert fallen() == set()


@pytest.mark.parametrize("fact", FACTS)
def test_a_structure_that_has_moved_is_found_out(fact):
    """Reading next to the right place does no harm, and finds no value that looks right."""
    if fact in ELSEWHERE:
        pytest.skip("it is elsewhere on this build")
    for shift in SHIFTS:
        assert not _core.check_inside(fact, shift)["facts"][fact], shift
        needing = set(NEED[fact]) - ELSEWHERE
        if not MONITORS and set(READS_FRAMES) & needing and "tracebacks" in needing:
            needing.add("recording")
        if fact == "version":
            needing |= {"recording"}  # if the version is wrong, no other fact is checked
        assert needing <= fallen()
    assert _core.check_inside()["facts"][fact]
    assert fallen() == set()


def test_who_replaced_len_keeps_turbo(workplace):
    """The check reads list.append, which no program can replace."""
    program = """
        import builtins
        of, is_one = len, isinstance
        builtins.len = lambda what: of(what)
        builtins.isinstance = lambda *args: is_one(*args)
        from vestige import _core
        print(_core.inside()["facts"]["callables"], _core.check_inside("callables", 24)["facts"]["callables"])
    """
    done = workplace.python(workplace.write("p.py", program))
    assert (done.stdout, done.stderr) == ("True False\n", "")


# Values as if a wheel built on 3.14.4 ran on 3.14.10: off by 24 bytes.
MOVED = """
import sys
import warnings
from vestige import _core, profile

_core.check_inside({fact!r}, 24)

def work(rows):
    for _ in range(3000):
        len(rows)

warnings.simplefilter("ignore")  # that turbo was asked for and does not record
with profile(output="t.vst", engine="turbo") as prof:
    work([1])
print(prof._session.engine)
"""


def moved(workplace, fact):
    done = workplace.python(workplace.write("p.py", MOVED.format(fact=fact)))
    assert done.stderr == ""
    return done.stdout.strip(), json.loads(workplace.vestige("info", "t.vst", "--json").stdout)["metadata"]


OTHERWISE = {
    "callables": "keeps len, isinstance and list.append elsewhere",
    "instructions": "has other numbers of instructions",
}


@pytest.mark.parametrize("fact", OTHERWISE)
def test_where_calls_of_len_are_not_as_known_the_safe_engine_records_each_and_info_says_why(workplace, fact):
    engine, metadata = moved(workplace, fact)
    assert (engine, metadata["vestige.engine"]) == (SAFE, SAFE)
    why = metadata["vestige.fallbacks"]["turbo"]
    here, built_on = sys.version.split()[0], _core.inside()["built_on"]
    start = (
        f"this Python, {here}, "
        if here == built_on
        else f"vestige was built on Python {built_on}, and this one, {here}, "
    )
    assert why == start + OTHERWISE[fact]
    assert list(metadata["vestige.fallbacks"]) == ["turbo", UNSEEN]
    shown = workplace.vestige("info", "t.vst").stdout
    assert f"  not turbo: {why}; vestige records with the safe engine\n" in shown
    report = workplace.vestige("report", "t.vst").stdout
    assert any("3,000" in line and "len" in line for line in report.splitlines()), report


def test_where_all_is_in_place_no_trace_says_anything_of_it(workplace):
    _, metadata = moved(workplace, None)
    assert "vestige.fallbacks" not in metadata
    assert "not " not in workplace.vestige("info", "t.vst").stdout


@pytest.mark.skipif(not MONITORS, reason="the safe engine reads frames until 3.11")
def test_where_frames_have_another_layout_everything_works_without_them(workplace):
    program = """
        import threading
        import warnings
        from vestige import _core, profile
        from vestige.traceback import CapturedTraceback

        _core.check_inside("frame", 8)
        warnings.simplefilter("ignore")  # that turbo was asked for and does not record

        def inner():
            return CapturedTraceback.extract().summary()

        def outer():
            return inner()

        with profile(output="t.vst", engine="turbo", profile_memory=True, record_args=["outer"]) as prof:
            held = [bytes(5000) for _ in range(100)]
            found = outer()
            thread = threading.Thread(target=outer, name="another")
            thread.start()
            thread.join()
        print(prof._session.engine)
        print([(frame.name, frame.lineno) for frame in found])
    """
    done = workplace.python(workplace.write("p.py", program))
    assert done.stderr == ""
    engine, frames = done.stdout.splitlines()
    assert engine == SAFE
    assert frames == "[('<module>', 18), ('outer', 14), ('inner', 11)]"
    fallbacks = json.loads(workplace.vestige("info", "t.vst", "--json").stdout)["metadata"]["vestige.fallbacks"]
    assert set(fallbacks) - ELSEWHERE == {*READS_FRAMES, UNSEEN}
    if HERE["debug"] or HERE["nogil"]:
        del fallbacks["turbo"], fallbacks[UNSEEN]  # turbo refuses such a build before it checks these
    reasons = {why for part, why in fallbacks.items() if part not in ELSEWHERE}
    assert {why.rpartition(", ")[2] for why in reasons} == {"has another layout of frames"}
    assert workplace.vestige("report", "t.vst").returncode == 0


@pytest.mark.skipif(MONITORS, reason="from 3.12 on the safe engine reads no frames")
def test_where_frames_have_another_layout_recording_is_refused_with_the_reason(workplace):
    program = """
        from vestige import _core, profile
        _core.check_inside("frame", 8)
        try:
            with profile(output="t.vst"):
                pass
        except RuntimeError as error:
            print(error)
    """
    done = workplace.python(workplace.write("p.py", program))
    assert done.stderr == ""
    assert done.stdout.endswith("has another layout of frames\n")


def test_info_without_a_trace_tells_how_this_python_is_recorded(workplace):
    assert workplace.vestige("info").stdout.splitlines()[1:3] == [
        f"  python   {sys.version.split()[0]}; vestige was built on {_core.inside()['built_on']}",
        f"  engine   {_core.engine_choices()['auto']}",
    ]
    told = json.loads(workplace.vestige("info", "--json").stdout)
    assert told["engines"] == {SAFE: None, "turbo": None}
    assert told["fallbacks"] == {}


def test_info_names_the_reason_why_turbo_is_not_used(workplace, monkeypatch):
    monkeypatch.setenv("VESTIGE_TURBO_SELF_TEST", "fail")
    monkeypatch.delenv("VESTIGE_ENGINE", raising=False)
    why = "its self test fails, as VESTIGE_TURBO_SELF_TEST asks for"
    assert f"  not turbo: {why}; vestige records with the safe engine\n" in workplace.vestige("info").stdout
    told = json.loads(workplace.vestige("info", "--json").stdout)
    assert (told["engine"], told["engines"]["turbo"], told["fallbacks"]) == (SAFE, why, {"turbo": why})
    workplace.trace("-c", "len('')")
    if told["auto"] == "turbo":
        assert (
            f"  not turbo: {why}; vestige records with the safe engine\n" in workplace.vestige("info", "t.vst").stdout
        )
