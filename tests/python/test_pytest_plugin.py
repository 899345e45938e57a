"""Markers that limit the memory of tests, in users' test runs: each run starts a new pytest."""

import json
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.any_python

TESTS = """
import gc, sys, threading, unittest
import pytest

kept = []

def load(size):
    return bytearray(size)

@pytest.mark.limit_memory("2 MB")
def test_within():
    load(1_000_000)

@pytest.mark.limit_memory("2 MB")
def test_above():
    first = load(3_000_000)
    del first
    assert gc.isenabled()

@pytest.mark.vestige_memory(leaks="10 KB")
def test_leaking():
    kept.append(load(30_000))

@pytest.mark.limit_leaks("10 KB")
def test_cycles_are_no_leaks():
    cycle = [load(30_000)]
    cycle.append(cycle)

@pytest.mark.vestige_memory(limit="1 MB", leaks=0)
def test_both():
    kept.append(load(2_000_000))

@pytest.fixture
def data():
    return load(5_000_000)

@pytest.mark.limit_memory("1 MB")
@pytest.mark.parametrize("size", [1000, 2_000_000])
def test_parameter(data, size):
    load(size)

@pytest.mark.limit_memory("1 MB")
def test_in_a_thread():
    thread = threading.Thread(target=lambda: load(2_000_000))
    thread.start()
    thread.join()

@pytest.mark.limit_memory("1 MB")
class TestUnits(unittest.TestCase):
    def test_within(self):
        pass
    def test_above(self):
        load(2_000_000)

@pytest.mark.limit_memory("1 MB")
def test_own_failure_comes_first():
    load(2_000_000)
    raise ValueError("mine")

@pytest.mark.limit_memory("1 MB")
@pytest.mark.limit_memory("9 MB")
def test_closest_marker_wins():
    load(2_000_000)

@pytest.mark.limit_memory("much")
def test_no_size():
    pass

@pytest.mark.vestige_memory()
def test_no_limit():
    pass

@pytest.mark.limit_memory("1 MB", current_thread_only=True)
def test_unknown_argument():
    pass

def test_unmarked_is_not_recorded():
    from vestige._core import memory_is_tracing
    load(50_000_000)
    assert not memory_is_tracing()

@pytest.mark.limit_memory("1 MB")
def test_marked_is_recorded():
    from vestige._core import memory_is_tracing
    assert memory_is_tracing()
"""
PASSED = {
    "test_within",
    "test_cycles_are_no_leaks",
    "test_closest_marker_wins",
    "test_parameter[1000]",
    "TestUnits::test_within",
    "test_unmarked_is_not_recorded",
    "test_marked_is_recorded",
}


def run(folder, *arguments, command=()):
    (folder / "test_them.py").write_text(TESTS)
    result = subprocess.run(
        [sys.executable, *command, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--strict-markers", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode in (0, 1), result.stdout + result.stderr
    return result.stdout


def outcomes(output):
    return dict(
        (name, outcome) for outcome, name in re.findall(r"^(PASSED|FAILED) test_them\.py::(\S+)", output, re.MULTILINE)
    )


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return run(tmp_path_factory.mktemp("plain"))


def message(output, name):
    """Returns the message of a failed test."""
    return output.partition(f"_ {name} _")[2].partition("\n____")[0].partition("\n====")[0]


def test_tests_above_their_limit_fail_and_others_pass(output):
    found = outcomes(output)
    assert {name for name, outcome in found.items() if outcome == "PASSED"} == PASSED
    assert len(found) == 17


def test_the_message_has_the_peak_and_the_lines_that_held_it(output):
    text = message(output, "test_above")
    assert "The test's memory peaked at 2.86 MiB; it is limited to 2.00 MiB. Held then:" in text
    assert re.search(r"2\.86 MiB in 2 blocks  test_them\.py:8 load\n", text)
    assert "pytest_plugin" not in text


def test_the_message_has_the_line_that_leaks(output):
    text = message(output, "test_leaking")
    assert "A line of the test leaked more than 10.0 KiB:\n" in text
    assert re.search(r"29\.\d KiB in 2 blocks  test_them\.py:8 load", text)
    text = message(output, "test_both")
    assert "it is limited to 1.00 MiB" in text and "leaked more than 0 B" in text


def test_wrong_markers_are_explained(output):
    assert "the limit: not a size: 'much'; write a number and K, M or G" in message(output, "test_no_size")
    assert 'write vestige_memory(limit="24 MB", leaks="1 MB")' in message(output, "test_no_limit")
    assert "vestige knows no other arguments" in message(output, "test_unknown_argument")


def test_pytest_memrays_names_are_left_to_it(tmp_path):
    (tmp_path / "memray.py").write_text(
        "def pytest_configure(config):\n"
        "    for name in ('limit_memory(x)', 'limit_leaks(x)'):\n"
        "        config.addinivalue_line('markers', f'{name}: another plugin')\n"
    )
    found = outcomes(run(tmp_path, "-p", "memray", "-k", "above or both or leaking"))
    assert found == {
        "test_above": "PASSED",
        "test_leaking": "FAILED",
        "test_both": "FAILED",
        "TestUnits::test_above": "PASSED",
    }


def test_all_tests_are_listed_by_their_peak(tmp_path):
    text = run(tmp_path, "--vestige-memory", "-k", "within or unmarked")
    lines = text.partition("memory of tests, at most")[2].splitlines()[1:4]
    assert [line.split()[-1].partition("::")[2] for line in lines] == [
        "test_unmarked_is_not_recorded",
        "test_within",
        "TestUnits::test_within",
    ]
    assert lines[0].split()[:2] == ["47.7", "MiB"]


def test_processes_of_xdist_check_their_tests(tmp_path):
    pytest.importorskip("xdist")
    text = run(tmp_path, "-n", "2", "--vestige-memory", "-k", "within or above")
    found = outcomes(text)
    assert [name for name, outcome in sorted(found.items()) if outcome == "PASSED"] == [
        "TestUnits::test_within",
        "test_within",
    ]
    assert len(found) == 4
    assert "2.86 MiB  test_them.py::test_above" in text


def test_a_run_that_is_recorded_itself_is_told_of(tmp_path):
    text = run(tmp_path, "-k", "test_above and not TestUnits", command=["-m", "vestige", "memory", "-q", "-o", "t.vst"])
    assert outcomes(text) == {"test_above": "PASSED"}
    assert "the memory of this test is not checked" in text


def test_an_unmarked_run_loads_nothing_more(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import json, sys\ndef test_it():\n    print(json.dumps(sorted(n for n in sys.modules if 'vestige' in n)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "test_it.py"], cwd=tmp_path, capture_output=True, text=True
    )
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("["))
    assert set(json.loads(line.rstrip("."))) == {
        "vestige",
        "vestige._core",
        "vestige.annotate",
        "vestige.pytest_plugin",
        "vestige.render",
    }
