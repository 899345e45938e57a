"""`make bench-counts`: compares counts with the committed counts, or says why it cannot (bench/counts.py)."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

HERE = {"python": "3.11.7, GCC 12.2.0", "libc.so.6": "0a", "processor": "1b"}
FIGURES = {"reading": {"open": 500_000.0, "report()": 30_000_000.0}}


@pytest.fixture
def counts(monkeypatch, tmp_path):
    bench = Path(__file__).resolve().parent.parent.parent / "bench"
    monkeypatch.setattr(sys, "path", [*sys.path, str(bench)])
    import counts

    monkeypatch.setattr(counts, "FIGURES", tmp_path / "counts.json")
    counts.FIGURES.write_text(json.dumps([{"environment": HERE, "instructions": FIGURES}]))
    return counts


class Counted:
    def __init__(self, environment, opened):
        self._environment, self._opened = environment, opened

    def environment(self):
        if self._environment is None:
            raise OSError("valgrind does not run this Python: []")
        return self._environment

    def measure(self, parts):
        return {"reading": {**FIGURES["reading"], "open": self._opened}}


def test_it_is_red_above_three_percent(counts, capsys):
    assert counts.check(Counted(HERE, 514_000.0), None, ["reading"]) == 0
    assert "2 checks passed, 0 failed" in capsys.readouterr().out
    assert counts.check(Counted(HERE, 516_000.0), None, ["reading"]) == 1
    printed = capsys.readouterr().out
    assert "# more instructions: reading, open: +3.2 %" in printed and "1 checks passed, 1 failed" in printed


def test_another_environment_is_not_compared_and_the_difference_is_named(counts, capsys):
    assert counts.check(Counted({**HERE, "libc.so.6": "0b"}, 900_000.0), None, ["reading"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("SKIPPED [1] ") and "libc.so.6 (0a there, 0b here)" in printed
    assert "processor" not in printed


def test_where_valgrind_cannot_run_nothing_is_compared(counts, capsys):
    assert counts.check(Counted(None, 900_000.0), None, ["reading"]) == 0
    assert "not compared: valgrind does not run this Python" in capsys.readouterr().out


def test_a_commit_is_compared_in_any_environment(counts, capsys):
    other = Counted({**HERE, "libc.so.6": "0b"}, 500_000.0)
    assert counts.check(Counted({**HERE, "libc.so.6": "0b"}, 500_000.0), other, ["reading"]) == 0
    assert counts.check(Counted({**HERE, "libc.so.6": "0b"}, 900_000.0), other, ["reading"]) == 1


def test_figures_of_other_environments_are_kept(counts):
    other = {**HERE, "processor": "2c"}
    counts.write(other, FIGURES)
    assert [each["environment"] for each in counts.known_figures()] == [HERE, other]
    counts.write(HERE, {"reading": {"open": 1.23}})
    assert [each["instructions"] for each in counts.known_figures()] == [FIGURES, {"reading": {"open": 1.2}}]
