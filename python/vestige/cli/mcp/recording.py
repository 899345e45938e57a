"""Records a command for an agent, if the user allowed that. The command may do whatever any program may: only its trace
is kept in the folder.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile

from vestige.base.failure import Failure
from vestige.cli import recording_options
from vestige.recording.option_table import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .folder import Folder

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
PYTHON = re.compile(r"python3?(\.\d+)?")
SAID = 2000  # bytes that are shown of the end of the program's output
SECONDS_MIN, SECONDS_MAX = 1.0, 3600.0
PROGRAM = ("-m", "-c")  # words that may come first, besides the name of a script


def record(
    folder: Folder,
    command: Sequence[str],
    name: str,
    seconds: float,
    arguments_of: Sequence[str] = (),
    *,
    sched: bool = False,
    memory: bool = False,
) -> tuple[str, str]:
    """Records a command. Returns the trace's id and a report about the run."""
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:  # also refuses NaN
        raise Failure(f"timeout_seconds must be from {SECONDS_MIN:.0f} to {SECONDS_MAX:.0f}, not {seconds}")
    given = {"record_args": arguments_of, "sched": sched}
    options = [word for each in given for word in recording_options.words(BY_NAME[each], given[each])]
    if memory and options:
        raise Failure("with `memory` allocations are recorded, and no calls: leave out `sched` and `record_args`")
    words = list(command)
    if words and PYTHON.fullmatch(os.path.basename(words[0])):
        del words[0]
    if not words:
        raise Failure("the command is empty: write ['script.py', 'argument'] or ['-m', 'module', 'argument']")
    if words[0].startswith("-") and words[0] not in PROGRAM:
        raise Failure(
            f"{words[0]} is no program: a command begins with a script, -m or -c; options have parameters here"
        )
    trace = f"{name or _free_name(folder)}.vst" if not name.endswith(".vst") else name
    if not NAME.fullmatch(trace):
        raise Failure(f"{trace} is no name for a trace: use letters, digits, dots and dashes")
    path = os.path.join(folder.root, trace)
    if os.path.lexists(path):
        raise Failure(f"{trace} is there already: choose another name")
    with tempfile.TemporaryFile(dir=folder.root) as said:
        kind = "memory" if memory else "run"
        program = [sys.executable, "-m", "vestige", kind, "-q", "-o", path, *options, *words]
        ended = _run(program, folder, said, seconds)
        end = said.seek(0, os.SEEK_END)
        said.seek(max(end - SAID, 0))
        printed = said.read(SAID).decode("utf-8", "replace")
    if not os.path.exists(path):
        raise Failure(f"nothing was recorded: the command {ended} and printed {printed.strip()[-500:]!r}")
    more = "…" if end > SAID else ""
    return trace, f"the command {ended}" + (f" and printed at its end:\n{more}{printed.rstrip()}" if printed else "")


def _free_name(folder: Folder) -> str:
    number = 1
    while os.path.lexists(os.path.join(folder.root, f"trace-{number}.vst")):
        number += 1
    return f"trace-{number}"


def _run(words: list[str], folder: Folder, said: object, seconds: float) -> str:
    """Runs the command and returns how it ended. When the time is over, interrupts the command, and the trace ends
    there.
    """
    process = subprocess.Popen(
        words,
        cwd=folder.root,
        stdin=subprocess.DEVNULL,
        stdout=said,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return f"was ended after {seconds:.0f} s"
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
