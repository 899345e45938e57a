"""A sample of fuzz_commands.py, which `make check NAME=commands` runs in full: damaged input gives one line at most."""

import subprocess
import sys
from pathlib import Path

import pytest

import fuzz_commands

pytestmark = pytest.mark.any_python
NAMES = [name for name in fuzz_commands.COMMANDS if name != "query"]


@pytest.mark.parametrize(
    "names", [*(NAMES[part::3] for part in range(3)), pytest.param(["query"], marks=pytest.mark.sql)]
)
def test_damaged_inputs_end_every_command_in_a_line(tmp_path, names):
    script = Path(fuzz_commands.__file__)
    command = [sys.executable, script, "--count", "25", "--folder", tmp_path, *names]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=script.parent)
    assert done.returncode == 0, done.stdout + done.stderr
