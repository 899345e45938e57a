"""Exceptions as marks: where each exception was raised and who caught it, with every engine. Up to Python 3.11, turbo
sees only exceptions that leave a function.
"""

import asyncio
import contextlib
import json
import sys
import threading

import pytest

import vestige
from tree import load, short
from vestige import profile, record_function

ENGINES = vestige._core.engines


def sees_all(engine):
    return engine != "turbo" or sys.version_info >= (3, 12)


def found(function, *args, engine, **options):
    """Returns [(type, function that raised, function that caught)] in order of time, for exceptions that this file
    raised.
    """
    with profile(engine=engine, exceptions=True, gc=False, **options) as prof, contextlib.suppress(Exception):
        function(*args)
    marks = [
        event for event in load(prof)["traceEvents"] if event["ph"] == "i" and "raised at" in event.get("args", {})
    ]
    assert all(set(mark["args"]) <= {"raised at", "raised in", "caught in"} for mark in marks)
    marks.sort(key=lambda mark: mark["ts"])
    names = [
        (
            mark["name"].rpartition(".")[2],
            *(mark["args"].get(key, "?") for key in ("raised at", "raised in", "caught in")),
        )
        for mark in marks
    ]
    return [
        (name, short(raised), caught and short(caught)) for name, at, raised, caught in names if "test_exceptions" in at
    ]


def raises():
    raise ValueError("what it says is nobody's business")


def passes():
    raises()


def catches():
    try:
        passes()
    except ValueError:
        return len("")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_call_that_goes_on_caught_it(engine):
    def outer():
        for _ in range(3):
            catches()

    assert found(outer, engine=engine) == [("ValueError", "raises", "catches")] * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_caught_where_it_was_raised(engine):
    def here():
        try:
            {}["key"]
        except KeyError:
            pass
        try:
            int("x")
        except ValueError:
            pass

    wanted = [("KeyError", "here", "here"), ("ValueError", "here", "here")]
    assert found(here, engine=engine) == (wanted if sees_all(engine) else [])


@pytest.mark.parametrize("engine", ENGINES)
def test_finally_and_with_catch_nothing(engine):
    def cleans():
        try:
            passes()
        except ValueError:
            pass

    @contextlib.contextmanager
    def manager():
        try:
            yield
        finally:
            cleans()

    def inner():
        try:
            with manager(), contextlib.ExitStack(), record_function("named"):
                raises()
        finally:
            cleans()

    def outer():
        with contextlib.suppress(ValueError):
            inner()
            catches()

    ours = ("ValueError", "raises", "outer")
    assert found(outer, engine=engine) == [ours, *[("ValueError", "raises", "cleans")] * 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_raised_again_is_not_caught_and_another_one_is_new(engine):
    def again():
        try:
            raises()
        except ValueError:
            catches()
            raise

    def other():
        try:
            again()
        except ValueError as error:
            raise KeyError from error

    def outer():
        try:
            other()
        except KeyError:
            pass

    assert sorted(found(outer, engine=engine)) == [
        ("KeyError", "other", "outer"),
        ("ValueError", "raises", "catches"),
        ("ValueError", "raises", "other"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_code_in_c_may_catch_it_or_pass_it_on(engine):
    class Refuses:
        def __getattr__(self, name):
            raise AttributeError

    def key(item):
        raise ValueError

    def outer():
        hasattr(Refuses(), "name")
        try:
            sorted([1, 2], key=key)
        except ValueError:
            pass

    assert found(outer, engine=engine) == [
        ("AttributeError", "__getattr__", "<hasattr>"),
        ("ValueError", "key", "outer"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_ends_of_iteration_are_no_marks(engine):
    def numbers():
        yield 1
        yield 2

    def outer():
        for _ in numbers():
            pass
        opened = numbers()
        next(opened)
        opened.close()
        try:
            next(iter([]))
        except StopIteration:
            pass
        return next(iter([]), None)

    assert found(outer, engine=engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_generator_passes_on_what_is_raised_in_it(engine):
    def numbers():
        yield 1
        raises()

    def outer():
        try:
            list(numbers())
        except ValueError:
            pass

    assert found(outer, engine=engine) == [("ValueError", "raises", "outer")]


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_caught_what_leaves_a_thread(engine, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: None)

    def outer():
        thread = threading.Thread(target=passes)
        thread.start()
        thread.join()

    # A function of threading passes the exception to the hook.
    assert found(outer, engine=engine) == [("ValueError", "raises", "_bootstrap_inner")]
    assert found(passes, engine=engine)[0][:2] == ("ValueError", "raises")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_task_failed_with_is_raised_again_where_it_is_awaited(engine):
    async def fails():
        raise OSError

    async def main():
        try:
            await asyncio.ensure_future(fails())
        except OSError:
            pass

    marks = found(asyncio.run, main(), engine=engine, c_functions=False)
    assert marks[0][:2] == ("OSError", "fails") and marks[0][2] != "main"
    assert marks[1:] == ([("OSError", "main", "main")] if sees_all(engine) else [])


@pytest.mark.parametrize("engine", ENGINES)
def test_code_that_is_left_out_raises_where_it_is_called(engine):
    def outer():
        try:
            json.loads("{")
        except ValueError:
            pass

    def calls():
        json.loads("{")

    def catches_it():
        try:
            calls()
        except ValueError:
            pass

    wanted = [("JSONDecodeError", "outer", "outer")] if sees_all(engine) else []
    assert found(outer, engine=engine, exclude=["*/json/*"]) == wanted
    assert found(catches_it, engine=engine, exclude=["*/json/*"]) == [("JSONDecodeError", "calls", "catches_it")]


@pytest.mark.parametrize("engine", ENGINES)
def test_exceptions_go_with_what_is_recorded(engine):
    def outer():
        catches()
        inside()

    def inside():
        catches()

    def inside_too():
        try:
            passes()
        except ValueError:
            catches()

    def leaves():
        passes()

    def around():
        try:
            leaves()
        except ValueError:
            pass

    assert found(outer, engine=engine, only=["inside"]) == [("ValueError", "raises", "catches")]
    assert found(outer, engine=engine, only=["inside"], max_depth=1) == []  # all of it happens deeper
    wanted = [("ValueError", "inside_too", "inside_too")] if sees_all(engine) else []
    assert found(inside_too, engine=engine, only=["inside_too"], max_depth=1) == wanted
    assert found(around, engine=engine, only=["around"], max_depth=2) == [("ValueError", "leaves", "around")]


@pytest.mark.parametrize("engine", ENGINES)
def test_exceptions_at_the_address_of_one_that_is_gone_are_marked(engine):
    def leaves():
        passes()

    def around():
        for _ in range(20):
            try:
                leaves()
            except ValueError:
                pass

    assert found(around, engine=engine, only=["around"], max_depth=2) == [("ValueError", "leaves", "around")] * 20


@pytest.mark.parametrize("engine", ENGINES)
def test_without_the_option_there_are_no_marks(engine):
    with profile(engine=engine) as prof:
        catches()
    assert len(prof._session.trace().tables(["exceptions"])["exceptions"]) == 0


def test_it_needs_calls():
    with pytest.raises(ValueError, match="exceptions=True needs with_stack=True"):
        profile(exceptions=True, with_stack=False)


PROGRAM = """
    import sys

    class Refused(Exception):
        pass

    def refuse(number):
        raise Refused(f"secret {number}")

    def ask():
        for number in range(3):
            try:
                refuse(number)
            except Refused:
                pass

    ask()
    refuse(3)
"""


@pytest.fixture
def recorded(workplace):
    program = workplace.write("p.py", PROGRAM)
    assert workplace.trace("--exceptions", program).returncode == 1
    return workplace


def test_the_report_tells_them_by_type_and_place(recorded):
    lines = recorded.vestige("report", "t.vst", "--exceptions").stdout.splitlines()
    assert lines[1:5] == [
        "    count  exception, where it was raised, and who caught it",
        "        4  Refused at p.py:8 in refuse",
        "        3    caught in p.py:10: ask",
        "        1    not caught",
    ]
    rows = json.loads(recorded.vestige("report", "t.vst", "--exceptions", "--format", "json").stdout)["exceptions"]
    ours = [row for row in rows if row["exception"] == "Refused"]
    assert [(row["raised_in"], row["caught_in"], row["end"], row["count"], row["line"]) for row in ours] == [
        ("p.py:7: refuse", "p.py:10: ask", "caught", 3, 8),
        ("p.py:7: refuse", None, "not caught", 1, 8),
    ]
    head = recorded.vestige("report", "t.vst", "--exceptions", "--format", "csv").stdout.splitlines()[0]
    assert head == "exception,file,line,raised_in,caught_in,end,count,library"


def test_what_they_say_is_not_recorded(recorded):
    assert b"secret" not in (recorded.path / "t.vst").read_bytes()


@pytest.mark.parametrize("name", ["t.json", "t.pftrace"])
def test_timelines_have_them(recorded, name):
    assert recorded.vestige("export", "t.vst", "-o", name).returncode == 0
    written = (recorded.path / name).read_bytes()
    assert b"Refused" in written and b"raised at" in written and b"p.py:8" in written


def test_a_trace_without_them_says_so(workplace):
    assert workplace.trace("-c", "pass").returncode == 0
    ended = workplace.vestige("report", "t.vst", "--exceptions")
    assert ended.returncode == 1
    assert ended.stderr == "vestige: --exceptions: exceptions were not recorded here; see vestige run --exceptions\n"
