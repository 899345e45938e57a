"""A short form of proofs/attach_races.py: programs end as usual when somebody attaches at difficult moments."""

import shutil
import sys
from pathlib import Path

import pytest

from running import BY_REMOTE_EXEC, need_a_way_in

need_a_way_in()
sys.path.append(str(Path(__file__).parents[2] / "proofs"))
import attach_races


@pytest.mark.parametrize("way", ["sys.remote_exec" if BY_REMOTE_EXEC else "gdb", "listen"])
def test_programs_end_as_alone_whatever_they_are_about(way):
    if way == "gdb" and shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    kinds = attach_races.KINDS[sys.version_info.minor % 3 :: 3]  # each Python tests a third of the kinds
    found = attach_races.prove(len(kinds), way, seed=1, kinds=kinds)
    assert found.trouble == []
    assert found.counts["recorded"] > 0
