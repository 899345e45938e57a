"""Some of the nasty programs print the same bare and recorded. `make check NAME=nasty` runs all, on every Python."""

import sys
from pathlib import Path

import pytest

import nasty_programs
from usable import usable_engines

sys.path.insert(0, str(Path(__file__).parents[2] / "proofs"))
import nasty

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
SAMPLE = [0, 1, 2, 6, 9]


@pytest.mark.parametrize("seed", SAMPLE)
@pytest.mark.parametrize("engine", usable_engines())
def test_a_nasty_program_prints_what_it_prints_without_us(engine, seed, tmp_path):
    engine = engine if engine == "turbo" else "safe"
    lines, found = nasty.differences(Path(sys.executable), engine, seed, tmp_path)
    assert lines > 5
    strange = {name: pair for name, pair in found.items() if not nasty.reason_of(name, engine, PYTHON, pair)}
    assert strange == {}


def test_a_program_that_prints_something_else_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(nasty_programs, "program", lambda seed: "import sys\nprint('seen:', 'vestige' in sys.modules)")
    _, found = nasty.differences(Path(sys.executable), "safe", 0, tmp_path)
    assert found == {"seen": (["False"], ["True"])}
    assert nasty.reason_of("seen", "safe", PYTHON, found["seen"]) is None


def test_a_program_is_the_same_each_time():
    assert [nasty_programs.program(seed) for seed in SAMPLE] == [nasty_programs.program(seed) for seed in SAMPLE]
    assert len({nasty_programs.program(seed) for seed in nasty_programs.SEEDS}) == len(nasty_programs.SEEDS) == 150
