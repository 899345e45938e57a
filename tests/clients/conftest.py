"""Recordings that several clients read: a training on two ranks with torch's profiler and with ours, a training with
Lightning, and a program without torch.
"""

import gzip
import importlib.util
import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "examples" / "demo.py"
RECORDED = [2, 3, 4]  # the steps recorded by the schedules of training.py and of Lightning


def run(*command, **options):
    result = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, **options
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """The output folder of training.py: its subfolders `torch` and `vestige` have a file of each rank."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch on this Python")
    for attempt in range(2):
        folder = tmp_path_factory.mktemp("training")
        codes, said = train(folder)
        if codes == [0, 0]:
            return folder
        failure = failure_of_ranks(codes, said)
        if attempt or not is_gloos_trouble(codes, said):
            pytest.fail(failure, pytrace=False)
        warnings.warn("training.py failed in gloo's connections, and runs once more: " + failure, stacklevel=1)


# Gloo's messages about connections that fail or break. Such a failure is not ours, unless it happens again.
GLOO = re.compile(r"gloo.*(connect|timed out|timeout|address)|Connection (closed by peer|reset|refused)", re.IGNORECASE)


def train(folder):
    """Returns the exit codes of the ranks and their output. If one rank fails, the others are ended, because they would
    wait for it.
    """
    command = [sys.executable, HERE / "training.py"]
    said = [folder / f"said.{rank}" for rank in range(2)]
    ranks = []
    for rank, path in enumerate(said):
        with path.open("w") as file:
            ranks.append(subprocess.Popen([*command, str(rank), folder], stdout=file, stderr=subprocess.STDOUT))
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        codes = [process.poll() for process in ranks]
        if None not in codes or any(codes):
            break
        time.sleep(0.05)
    time.sleep(0 if None not in codes else 2)  # the other rank may still report its reason
    codes = [process.poll() for process in ranks]
    for process in ranks:
        process.kill()
        process.wait()
    return codes, [path.read_text(errors="replace") for path in said]


def exception_of(text):
    """Returns the last exception in a rank's output: the lines behind its traceback."""
    _, traceback, rest = text.rpartition("Traceback (most recent call last):\n")
    return "\n".join(line for line in rest.splitlines() if not line.startswith("  ")) if traceback else ""


def is_gloos_trouble(codes, said):
    """Returns whether every failed rank died of an exception of gloo's."""
    ends = [exception_of(text) for code, text in zip(codes, said) if code]
    return bool(ends) and all(GLOO.search(end) for end in ends)


def failure_of_ranks(codes, said):
    """Returns how each rank ended, by its last lines, followed by the whole output."""
    lines = []
    for rank, (code, text) in enumerate(zip(codes, said)):
        end = exception_of(text) or text.strip()[-300:]
        way = "did not end" if code is None else f"ended with {code}"
        lines.append(f"rank {rank} {way}: {' | '.join(end.splitlines()[:4])}")
    return "\n".join([*lines, *said])


@pytest.fixture(scope="session")
def lightning(tmp_path_factory):
    """The output folder of lightning_fit.py, written by Lightning's profiler."""
    for package in ("torch", "lightning"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package} on this Python")
    folder = tmp_path_factory.mktemp("lightning")
    run(HERE / "lightning_fit.py", folder, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A folder with the trace of a program without torch, under a name that the TensorBoard plugin reads."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "log").mkdir()
    run("-m", "vestige", "run", "-q", "-o", folder / "demo.vst", DEMO, cwd=folder)
    run("-m", "vestige", "export", folder / "demo.vst", "-o", folder / "log" / "demo.1.pt.trace.json.gz")
    return folder / "log"


def document(path, **options):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, **options)


def only(folder, pattern):
    """Returns the only file that matches."""
    (path,) = Path(folder).glob(pattern)
    return path
