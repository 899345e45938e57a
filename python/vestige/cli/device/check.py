"""`vestige device check`: runs a known workload on a GPU twice, recorded by torch.profiler and by vestige, and
compares. The authors of vestige have no GPU, so the user is asked to send the verdict.

Exit codes: 0 if the recordings are equal, 1 if they differ, 3 if the check cannot run here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from vestige import _core
from vestige.base.failure import Failure
from vestige.base.printable import one_line as clean
from vestige.cli.console import Parser
from vestige.recording.devices import cuda_trouble

from .compare import Timeline, compare, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
  vestige device check
  vestige device check --keep files
  vestige device check --files torch.json vestige.json

The exit code is 0 if both are equal, 1 if they differ, and 3 if the check
cannot run here: there is no GPU, no driver, no libcupti or no torch.
"""
CANNOT = 3
SEND = "Please send this to the authors of vestige, whatever the verdict, as an issue of the project."
PROBE = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 9)"
SECONDS = 600


def main(argv: list[str]) -> int:
    parser = Parser(
        "device check",
        "Compare vestige's recording of a GPU with torch.profiler's.",
        "[options]",
        EXAMPLES,
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep both files in this folder")
    parser.add_argument(
        "--files", metavar=("THEIRS", "OURS"), nargs=2, help="compare these two Chrome files instead of recording"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(argv)
    if options.files:
        return _tell(options.files, {}, options.json)
    trouble = _trouble()
    if trouble:
        raise Failure(f"device check: {trouble}; nothing was compared", code=CANNOT)
    if options.keep is not None:
        os.makedirs(options.keep, exist_ok=True)
        return _check(options.keep, options.json)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="vestige-") as folder:
        return _check(folder, options.json)


def _trouble() -> str:
    """Returns why the check cannot run here; "" if it can."""
    trouble = cuda_trouble()
    if trouble:
        return trouble
    code = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode
    return "" if code == 0 else "torch finds no GPU here" if code == 9 else "torch cannot be imported here"


def _check(folder: str, as_json: bool) -> int:
    """Runs each recording in a process of its own, because CUPTI serves only one profiler."""
    files = [os.path.join(folder, f"{how}.json") for how in ("torch", "vestige")]
    facts: dict[str, str] = {}
    for how, path in zip(("torch", "vestige"), files):
        command = [sys.executable, "-m", "vestige.cli.device.workload", how, path]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"device check: the run with {how} did not end in {SECONDS} s", code=1) from None
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failure(f"device check: the run with {how} ended with {result.returncode}: {last}", code=1)
        facts = json.loads(result.stdout.splitlines()[-1])
        told = [line for line in result.stderr.splitlines() if "vestige:" in line]
        if told:
            facts["told"] = " / ".join(told)
    return _tell(files, facts, as_json)


def _load(path: str) -> Any:
    try:
        with open(path) as file:
            return json.load(file)
    except (ValueError, RecursionError):
        raise Failure(f"{path}: not a Chrome file") from None


def _tell(files: list[str], facts: dict[str, str], as_json: bool) -> int:
    try:
        found = compare(*(Timeline(_load(path)) for path in files))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Failure(f"{files[0]}, {files[1]}: an event lacks a field ({error})") from None
    different = sum(bool(differences) for _, differences in found)
    facts = {"vestige": _core.__version__, **facts}
    if as_json:
        print(json.dumps({"different": different, "compared": dict(found), "facts": facts}, indent=2))
        return int(different > 0)
    for name, text in facts.items():
        print(f"{name:<9}  {clean(text)}")
    for line in verdict(found):
        print(line)
    print(f"verdict    {different} of {len(found)} differ" if different else "verdict    the same")
    print(SEND)
    return int(different > 0)
