"""`make test` runs failed parts a second time, alone: scripts/test_again.sh, in a folder with parts that failed."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

AGAIN = Path(__file__).resolve().parents[2] / "scripts" / "test_again.sh"
FAILED = "FAILED tests/python/test_a.py::test_{} - AssertionError: assert [1] == [2]\n"


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "build" / "test").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()

    def again(logs, code=0):
        for part, log in logs.items():
            (tmp_path / "build" / "test" / f"{part}.log").write_text(log)
        script = tmp_path / "scripts" / "test_python.sh"
        script.write_text(f'#!/bin/sh\necho "$*" >>asked\nexit {code}\n')
        script.chmod(0o755)
        told = subprocess.run(
            [AGAIN, *logs], cwd=tmp_path, env={**os.environ, "PY": "3.11"}, capture_output=True, text=True, check=False
        )
        asked = tmp_path / "asked"
        return told.returncode, told.stdout.splitlines(), asked.read_text().splitlines() if asked.exists() else []

    return again


def test_tests_that_pass_alone_are_named(parts):
    logs = {"python-3.12": FAILED.format("one[x y]") + FAILED.format("one[z]"), "torch": FAILED.format("two")}
    one, two = "tests/python/test_a.py::test_one", "tests/python/test_a.py::test_two"
    assert parts(logs) == (0, [f"python-3.12: {one}", f"torch: {two}"], [f"3.12 only {one}", f"3.11 only {two}"])


def test_what_fails_again_has_failed(parts):
    code, named, asked = parts({"python-3.12": FAILED.format("one")}, code=1)
    assert code != 0 and named == [] and len(asked) == 1


@pytest.mark.parametrize(
    "logs",
    [
        {"python-3.12": "Fatal Python error: Segmentation fault\n"},
        {"python-3.12": FAILED.format("one") + "!!! Interrupted: 1 error during collection !!!\n"},
        {"tsan": FAILED.format("one")},
        {"python-3.12": "".join(FAILED.format(name) for name in "abcd")},
        {"python-3.12": FAILED.format("a") + FAILED.format("b"), "torch": FAILED.format("c") + FAILED.format("d")},
    ],
    ids=["a crash", "an interrupted run", "a test in C", "four of a part", "four of two parts"],
)
def test_a_crash_a_test_in_c_and_more_than_three_get_no_second_try(parts, logs):
    code, named, asked = parts(logs)
    assert code != 0 and named == [] and asked == []
