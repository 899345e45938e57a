"""The lines from which functions are called: which calls have a line, with each engine, and that the line is right.

A call of a millisecond is longer than the interval between two look-ups of a thread (VST_LINES_NS), so such a call
always has its line.
"""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import vestige
from arrow_reader import rows_of
from vestige._core import Trace, engines

SLEEP = "<built-in function sleep>"


def record(tmp_path, source, *words, name="program.py"):
    """Runs a program, with `from time import sleep` put before its first line. Imports asyncio only for programs that
    use it, because this takes longer than the rest.
    """
    program = tmp_path / name
    imports = "from time import sleep" + "; import asyncio" * ("asyncio" in source)
    program.write_text(imports + "\n" + textwrap.dedent(source).lstrip("\n"))
    trace = tmp_path / "t.vst"
    command = [sys.executable, "-m", "vestige", "run", "-q", "-o", str(trace), "--force", *words, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return Trace(str(trace))


def lines(trace, file="program.py"):
    """Returns {(caller, line, function, whether other calls lie between): calls} for functions of a file, without
    imports.
    """
    functions = trace.functions()
    rows = trace.tables(["lines"])["lines"]
    return {
        (functions[row.caller].name, row.line, functions[row.func].name, row.through): row.calls
        for row in rows
        if functions[row.caller].file.endswith(file) and "_find_and_load" not in functions[row.func].name
    }


@pytest.fixture(params=engines)
def engine(request):
    return f"--engine={request.param}"


def test_a_function_that_is_called_from_two_lines_has_both(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            def leaf():
                sleep(.001)

            def two():
                leaf()
                for _ in range(3):
                    leaf()

            two()
            """,
            engine,
        )
    )
    assert found == {
        ("<module>", 10, "two", False): 1,
        ("two", 6, "leaf", False): 1,
        ("two", 8, "leaf", False): 3,
        ("leaf", 3, SLEEP, False): 4,
    }


def test_a_coroutine_is_called_where_it_is_awaited(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            async def inner():
                await asyncio.sleep(0)
                sleep(.001)

            async def outer():
                await inner()
                later = inner()

                await later

            asyncio.run(outer())
            """,
            engine,
        )
    )
    assert found["inner", 4, SLEEP, False] == 2
    assert {line for caller, line, function, _ in found if (caller, function) == ("outer", "inner")} == {7, 10}


def test_comprehensions_generators_and_lambdas_have_their_lines(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            def work():
                a = [sleep(.001) for _ in range(2)]
                b = list(sleep(.001) for _ in range(2))
                c = sorted([2, 1], key=lambda n: sleep(.001) or n)
                return a, b, c

            work()
            """,
            engine,
        )
    )
    calls = {}
    for (_, line, function, _), count in found.items():
        if function == SLEEP:
            calls[line] = calls.get(line, 0) + count
    assert calls == {3: 2, 4: 2, 5: 2}
    assert ("work", 5, "<built-in function sorted>", False) in found
    assert ("work", 5, "work.<locals>.<lambda>", True) in found


def test_a_decorated_function_is_called_by_its_wrapper(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            import functools

            def decorator(function):
                @functools.wraps(function)
                def wrapper(*args):
                    return function(*args)

                return wrapper

            @decorator
            def fetch():
                sleep(.001)

            def main():
                fetch()

            main()
            """,
            engine,
        )
    )
    assert found["main", 16, "decorator.<locals>.wrapper", False] == 1
    assert found["decorator.<locals>.wrapper", 7, "fetch", False] == 1
    assert found["fetch", 13, SLEEP, False] == 1


def test_properties_operators_and_with_statements_call_from_their_lines(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            class Thing:
                @property
                def size(self):
                    sleep(.001)

                def __add__(self, other):
                    sleep(.001)

                def __enter__(self):
                    sleep(.001)

                def __exit__(self, *_):
                    sleep(.001)

            def main(thing):
                thing.size
                thing + thing
                with thing:
                    pass

            main(Thing())
            """,
            engine,
        )
    )
    called = {function: line for caller, line, function, _ in found if caller == "main"}
    assert called == {"Thing.size": 17, "Thing.__add__": 18, "Thing.__enter__": 19, "Thing.__exit__": 19}


def test_code_that_takes_the_place_of_ended_code_has_lines_of_its_own(tmp_path, engine):
    """The trace takes each new code object for the function of the old one at the same address; its call is at a later
    line.
    """
    found = lines(
        record(
            tmp_path,
            """
            for number in range(8):
                exec(compile("\\n" * number + "sleep(.002)", "made.py", "exec"), {"sleep": sleep})
            """,
            engine,
        ),
        "made.py",
    )
    assert {line for _, line, function, _ in found if function == SLEEP} == set(range(1, 9))


def test_recursion_knows_which_line_called_again(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            def down(depth):
                sleep(.001)
                if depth % 2:
                    down(depth - 1)
                elif depth:
                    down(depth - 1)

            down(5)
            """,
            engine,
        )
    )
    assert found["down", 5, "down", False] == 3
    assert found["down", 7, "down", False] == 2


def test_a_stack_that_is_too_deep_has_no_lines_and_harms_nothing(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            import sys
            sys.setrecursionlimit(5000)

            def down(depth):
                if depth:
                    return down(depth - 1)
                sleep(.001)

            down(700)
            sleep(.001)
            """,
            engine,
        )
    )
    assert not any(function == SLEEP and caller == "down" for caller, _, function, _ in found)
    assert found["<module>", 11, SLEEP, False] == 1


def test_calls_that_are_left_out_leave_the_lines_right(tmp_path, engine):
    source = """
    import other

    def main():
        other.run(work)

    def work():
        sleep(.001)

    main()
    """
    (tmp_path / "other.py").write_text("def run(function):\n    function()\n")
    found = lines(record(tmp_path, source, engine, "--exclude", "other.py"))
    assert found["main", 5, "work", False] == 1  # the line in main that led there, because run() is not in the trace
    found = lines(record(tmp_path, source, engine, "--max-depth", "2"))
    assert ("<module>", 10, "main", False) in found
    found = lines(record(tmp_path, source, engine, "--only", "work"))
    assert found == {("work", 8, SLEEP, False): 1}


def test_short_calls_that_are_left_out_stay_out(tmp_path, engine):
    trace = record(
        tmp_path,
        """
        def quick():
            pass

        def main():
            for _ in range(20000):
                quick()
            sleep(.15)

        main()
        """,
        engine,
        "--min-duration=100ms",
    )
    names = {function.name for function in trace.functions() if function}
    assert "quick" in names
    assert all(end - start >= 100_000_000 for start, end in trace.spans("quick"))  # the machine may stop a call
    assert lines(trace)["main", 8, SLEEP, False] == 1


def test_threads_and_children_have_lines(tmp_path, engine):
    trace = record(
        tmp_path,
        """
        import threading, os

        def work():
            sleep(.001)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        if not os.fork():
            work()
            os._exit(0)
        os.wait()
        """,
        engine,
    )
    assert lines(trace)["work", 5, SLEEP, False] == 3
    (child,) = [path for path in tmp_path.glob("t.*.vst")]
    assert lines(Trace(str(child)))["work", 5, SLEEP, False] == 1


def test_no_lines_leaves_them_out(tmp_path):
    assert lines(record(tmp_path, "sleep(.002)", "--no-lines")) == {}


def test_spans_have_the_line_of_their_call_and_the_bare_name(tmp_path):
    record(tmp_path, "def f():\n    sleep(.001)\nf()")
    with vestige.open(tmp_path / "t.vst") as traces:
        rows = rows_of(traces.span)
    found = {row["function"]: (row["name"], row["line"]) for row in rows if row["function"] in (SLEEP, "f")}
    assert found == {SLEEP: (SLEEP, 3), "f": ("program.py(2): f", 4)}


def test_a_bounded_recording_has_lines_in_what_is_left(tmp_path, engine):
    found = lines(
        record(
            tmp_path,
            """
            def work():
                for _ in range(1000):
                    len("")
                sleep(.001)

            for _ in range(1000):
                work()
            """,
            engine,
            "--max-size=1M",
        )
    )
    assert found["work", 5, SLEEP, False] > 0
    assert found["<module>", 8, "work", False] > 0


def test_an_old_trace_has_no_lines():
    trace = Trace(str(Path(__file__).resolve().parents[1] / "golden/traces/plain.vst"))
    assert len(trace.tables(["lines"])["lines"]) == 0


def test_report_lines_shows_the_source_with_calls_and_times(tmp_path):
    record(
        tmp_path,
        """
        def leaf():
            sleep(.001)

        def work():
            leaf()
            for _ in range(3):
                leaf()

        work()
        """,
    )

    def report(*words):
        command = [sys.executable, "-m", "vestige", "report", "t.vst", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    text = report("--lines", "work").stdout
    assert re.search(r"^ +1 +[\d.]+ ms +6  +leaf\(\)$", text, re.MULTILINE), text
    assert re.search(r"^ +3 +[\d.]+ ms +8 {10}leaf\(\)$", text, re.MULTILINE), text
    assert re.search(r"^ +5  def work\(\):$", text, re.MULTILINE), text
    (function,) = json.loads(report("--lines", "work", "--format", "json").stdout)["functions"]
    assert [(row["line"], row["calls"], row["count"], row["estimated"]) for row in function["lines"]] == [
        (6, "leaf", 1, False),
        (8, "leaf", 3, False),
    ]
    (tmp_path / "program.py").unlink()
    text = report("--lines", "work").stdout
    assert "cannot be read here" in text and re.search(r"^ +3 +[\d.]+ ms +8  leaf$", text, re.MULTILINE), text
    wrong = report("--lines", "nothing")
    assert wrong.returncode == 2
    assert "no Python function of this name was called" in wrong.stderr


def test_a_finding_and_a_leaf_of_the_tree_name_the_line_of_the_call(tmp_path):
    record(
        tmp_path,
        """
        def nap():
            sleep(1.5)

        def main():
            nap()

        main()
        """,
    )
    command = [sys.executable, "-m", "vestige", "report", "t.vst"]
    found = subprocess.run([*command, "--findings"], capture_output=True, text=True, cwd=tmp_path).stdout
    assert "program.py:3: nap waits in sleep" in " ".join(found.split())
    tree = subprocess.run([*command, "--tree"], capture_output=True, text=True, cwd=tmp_path).stdout
    assert re.search(r"sleep>.*  program\.py:3$", tree, re.MULTILINE), tree
    assert "program.py:2: nap" in tree
