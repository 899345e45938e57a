"""A short soak: every engine repeats for some seconds what proofs/soak.py does 100,000 times."""

import subprocess
import sys
from pathlib import Path

import compiled
from usable import usable_engines

SOAK = Path(__file__).parent.parent.parent / "proofs" / "soak.py"
SECONDS = 3


def test_starting_and_stopping_over_and_over_leaves_nothing_behind():
    compiled.need_compiler()
    command = [sys.executable, str(SOAK), "--engine", "all", "--seconds", str(SECONDS), "--warm-up", "0.4"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
    for engine in usable_engines():
        assert f"starts of {engine}" in result.stdout
