"""Fixtures for tests of the command: programs written to a folder, run by plain Python and by `vestige run`."""

import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path
from zlib import crc32

import pytest

from browser import BROWSER, Browser
from emulated import be_patient
from other_builds import HERE, skip_what_cannot_run_here
from pace import leave_out_slow, pytest_runtest_protocol, pytest_sessionfinish  # noqa: F401 (hooks)

# A shell starts background programs with interrupts ignored, and child programs inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
be_patient()


def runs_elsewhere(path):
    """Whether another Python runs the tests of a file that are marked any_python: the versions in VESTIGE_TURNS take
    turns. Without this variable, all tests run.
    """
    turns = os.environ.get("VESTIGE_TURNS", "").split()
    here = f"{sys.version_info[0]}.{sys.version_info[1]}{'t' * HERE['nogil']}"
    return bool(turns) and turns[crc32(path.name.encode()) % len(turns)] != here


def pytest_ignore_collect(collection_path):
    """Does not import files whose tests all run elsewhere, which takes seconds."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if (
        is_test
        and runs_elsewhere(collection_path)
        and "\npytestmark = pytest.mark.any_python\n" in collection_path.read_text()
    ):
        return True
    return None  # pytest decides


def pytest_collection_modifyitems(config, items):
    """Deselects tests marked any_python that another Python runs."""
    leave_out_slow(config, items)
    skip_what_cannot_run_here(items)
    others = [item for item in items if item.get_closest_marker("any_python") and runs_elsewhere(item.path)]
    left = set(others)
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=others)


ENGINE = "VESTIGE_ENGINE"
engine_before = os.environ.get(ENGINE)


def pytest_runtest_setup(item):
    """A test marked safe_engine runs with the safe engine, even where "auto" would select turbo."""
    if item.get_closest_marker("sql"):
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if item.get_closest_marker("safe_engine"):
        os.environ[ENGINE] = "safe"


def pytest_runtest_teardown(item):
    if item.get_closest_marker("safe_engine"):
        os.environ.pop(ENGINE, None)  # not set if the test was skipped
        if engine_before is not None:
            os.environ[ENGINE] = engine_before
    assert not HERE["nogil"] or not sys._is_gil_enabled(), "this has turned the GIL on"


COMMAND = str(Path(sysconfig.get_path("scripts")) / "vestige")


def interpreter():
    """Returns the interpreter that runs the command, by the same name, which some messages show."""
    with open(COMMAND) as file:
        name = file.readline().removeprefix("#!").strip()
    return name if Path(name).name.startswith("python") else sys.executable


PYTHON = interpreter()


TIMEOUT = 300 if HERE["debug"] else 60  # a debug build is slow


class Workplace:
    """A folder with programs, and ways to run them there."""

    def __init__(self, path):
        self.path = path

    def write(self, name, source):
        """Writes a program, and makes its folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return path

    def python(self, *args, **options):
        return self._run([PYTHON, *args], **options)

    def vestige(self, *args, **options):
        return self._run([COMMAND, *args], **options)

    def trace(self, *args, **options):
        """Records a program into t.vst, without a report."""
        return self.vestige("run", "-q", "-o", "t.vst", "--force", *args, **options)

    def _run(self, command, **options):
        options = {"cwd": self.path, "capture_output": True, "text": True, "timeout": TIMEOUT, **options}
        return subprocess.run([str(word) for word in command], **options)


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One browser for all tests, because its start takes a second of CPU. Each test closes its pages."""
    if not BROWSER:
        pytest.skip("no Chromium is installed (Debian's package chromium)")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def same(workplace):
    """Asserts that a program prints and returns the same with and without vestige; returns plain Python's result."""

    def check(*args, stderr=True, **options):
        plain = workplace.python(*args, **options)
        traced = workplace.trace(*args, **options)
        assert traced.stdout == plain.stdout
        assert traced.returncode == plain.returncode
        if stderr:
            assert traced.stderr == plain.stderr
        return plain

    return check
