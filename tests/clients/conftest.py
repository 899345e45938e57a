"""Recordings that several clients read: a training on two ranks, by torch's profiler and by ours; one by Lightning; a
program without torch.
"""

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "examples" / "demo.py"
RECORDED = [2, 3, 4]  # steps, by the schedules of training.py and of Lightning


def run(*command, **options):
    result = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, **options
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """The folder of training.py: `torch` and `vestige` in it have a file of each rank."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch on this Python")
    folder = tmp_path_factory.mktemp("training")
    command = [sys.executable, HERE / "training.py"]
    ranks = [
        subprocess.Popen([*command, str(rank), folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=300)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0, 0], "\n".join(said)
    return folder


@pytest.fixture(scope="session")
def lightning(tmp_path_factory):
    """The folder of lightning_fit.py, which Lightning's profiler filled."""
    for package in ("torch", "lightning"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package} on this Python")
    folder = tmp_path_factory.mktemp("lightning")
    run(HERE / "lightning_fit.py", folder, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A folder with the trace of a program without torch, under the name that the TensorBoard plugin looks for."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "log").mkdir()
    run("-m", "vestige", "run", "-q", "-o", folder / "demo.vst", DEMO, cwd=folder)
    run("-m", "vestige", "export", folder / "demo.vst", "-o", folder / "log" / "demo.1.pt.trace.json.gz")
    return folder / "log"


def document(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def only(folder, pattern):
    """The one file that matches."""
    (path,) = Path(folder).glob(pattern)
    return path
