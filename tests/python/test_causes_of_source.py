"""Causes and lines for which a finding looks into the source of the program, and counts of caught exceptions."""

import ast
import json
import subprocess
import sys

import pytest

from vestige.cli.report.source import changes_argument, line_of_sum, lines_of_calls, lines_of_loop, lines_of_try

VESTIGE = [sys.executable, "-m", "vestige"]


def code(text):
    return ast.parse(text).body[0]


def found_in(tmp_path, text):
    (tmp_path / "program.py").write_text(text)
    run = [*VESTIGE, "run", "-q", "-o", "t.vst", "program.py"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    said = subprocess.run(
        [*VESTIGE, "report", "t.vst", "--findings", "--format", "json"], cwd=tmp_path, check=True, capture_output=True
    )
    return {each["kind"]: each for each in json.loads(said.stdout)["findings"]}


@pytest.mark.any_python
def test_a_call_is_found_by_the_last_part_of_its_name():
    function = code("def f(a):\n    a.get(1)\n    def g():\n        a.get(2)\n    return a.b.get(\n        3)\n")
    assert lines_of_calls(function, "get") == [2, 5]  # the line in which a call of several lines names the function
    assert lines_of_calls(function, "put") == []


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def f(n):\n    for a in n:\n        for b in a:\n            n += b\n", [3, 4]),
        ("def f(n):\n    while n:\n        n -= 1\n        n //= 2\n", [2]),
        ("def f(n):\n    for a in n: pass\n    for b in n: pass\n", []),  # either may be the one
        ("def f(n):\n    return n\n", []),
    ],
)
def test_the_innermost_loop_is_where_a_function_computes(text, lines):
    assert lines_of_loop(code(text)) == lines


@pytest.mark.any_python
def test_what_a_function_tries_is_known_if_it_tries_once():
    once = "def f(a):\n    try:\n        return int(a)\n    except ValueError:\n        return 0\n"
    assert lines_of_try(code(once)) == [3]
    assert lines_of_try(code(once + "    try:\n        pass\n    except ValueError:\n        pass\n")) == []


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("while jobs:\n        first = min(jobs)\n        jobs.remove(first)", True),
        ("for a in jobs:\n        rows = [a]\n        rows.append(1)\n        min(rows)", False),  # made anew each time
        ("for a in jobs:\n        min(range(a))", False),
        ("for a in jobs:\n        self.rows.append(a)\n        min(self.rows)", True),
        ("for a in jobs:\n        rows = insert(rows, a)\n        rows.append(1)\n        min(rows)", True),
    ],
)
def test_a_container_grows_if_its_function_changes_it(body, changes):
    assert changes_argument(code(f"def f(self, jobs, rows):\n    {body}\n"), "min") is changes


@pytest.mark.any_python
def test_a_sum_of_lists_is_found_by_its_start():
    assert line_of_sum(code("def f(a):\n    return sum(a, [])\n")) == 2
    assert line_of_sum(code("def f(a):\n    return sum(a, start=())\n")) == 2
    assert line_of_sum(code("def f(a):\n    return sum(a, 0) + sum(a)\n")) == 0


CAUGHT = """\
def count(words):
    found, missed = {}, 0
    for word in words:
        try:
            found[word] += 1
        except KeyError:
            missed += 1
    return missed

print(count(range(400000)))
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells of no exception that stays in a function")
def test_exceptions_that_a_function_catches_by_itself_are_counted(tmp_path):
    found = found_in(tmp_path, CAUGHT)["exceptions"]
    assert found["numbers"]["exceptions"] == 400_000
    assert "program.py:5: count raised 400,000 exceptions that it caught by itself" in found["text"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells of no exception that stays in a function")
@pytest.mark.parametrize("option", [[], ["--exceptions"], ["--engine", "safe"], ["--budget", "50%"]])
def test_the_end_of_iterators_and_other_recordings_count_nothing_wrong(tmp_path, option):
    (tmp_path / "program.py").write_text(
        "def f(n):\n    for _ in range(n):\n        try:\n            next(iter(()))\n"
        "        except StopIteration:\n            pass\nf(20000)\n" + CAUGHT.replace("400000", "20000")
    )
    run = [*VESTIGE, "run", "-q", *option, "-o", "t.vst", "program.py"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    text = "import vestige._core as c; print(c.Trace('t.vst').metadata().get('vestige.raised', ''))"
    noted = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    counts = list(json.loads(noted).values()) if noted.strip() else []
    assert counts == ([] if option and option[0] in ("--exceptions", "--budget") else [20000])


LOCK = """\
import contextlib, threading, time
lock = threading.Lock()

@contextlib.contextmanager
def alone():
    lock.acquire()
    try:
        yield
    finally:
        lock.release()

def work():
    for _ in range(10):
        with alone():
            time.sleep(0.01)

threads = [threading.Thread(target=work) for _ in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_a_lock_that_a_generator_takes_for_a_with_block_is_held_until_it_goes_on(tmp_path):
    found = found_in(tmp_path, LOCK)["lock"]
    assert found["where"]["waiter"].endswith(": alone") and "slept (sleep)" in found["text"]


AWAITS = """\
import asyncio

async def serve(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.002)
        writer.write(line)
    writer.close()

async def get(reader, writer, key):
    writer.write(b"%d\\n" % key)
    return await reader.readline()

async def load(reader, writer):
    return [await get(reader, writer, key) for key in range(200)]

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    streams = await asyncio.open_connection(*server.sockets[0].getsockname())
    await load(*streams)
    streams[1].close()

asyncio.run(main())
"""


def test_a_coroutine_that_awaits_one_answer_after_the_other_makes_many_requests(tmp_path):
    found = found_in(tmp_path, AWAITS)["many requests"]
    # up to 3.11 a comprehension is a function of its own
    assert "program.py:14: " in found["text"] and "get 200 times each time it runs" in found["text"]
