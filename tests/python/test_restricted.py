"""vestige in restricted environments: each command works, or says in one line why not, and the program goes on.
docs/guides/storage.md has the results as a table.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PYTHON

HERE = Path(__file__).resolve().parent
COMMANDS = HERE / "restricted_commands.py"
WORKS = "works"
pytestmark = pytest.mark.any_python

DOCS = HERE.parents[1] / "docs/guides/storage.md"
TIMEOUT_S = 300
MOUNTS = "mount --make-rprivate / && "


@pytest.fixture(scope="session")
def confine(tmp_path_factory):
    """The program that runs others under a seccomp filter."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        pytest.skip("no C compiler")
    built = tmp_path_factory.mktemp("confine") / "confine"
    done = subprocess.run([compiler, "-o", built, HERE / "confine.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "work"
    (made / "private").mkdir(parents=True)
    (made / "private").chmod(0o700)
    (made / "tmp").mkdir()
    return made


def run_commands(folder, *, shell="", prefix=(), environment=None):
    """Runs the commands in a mount namespace that the shell words have prepared, and returns how each went."""
    words = [sys.executable, str(COMMANDS), PYTHON, str(folder), *map(str, prefix)]
    if shell:
        words = ["unshare", "--mount", "sh", "-c", f'{MOUNTS}{shell} && exec "$@"', "sh", *words]
    known = {**os.environ, "VESTIGE_TMPDIR": str(folder / "tmp")} if environment is None else environment
    done = subprocess.run(words, capture_output=True, text=True, env=known, timeout=TIMEOUT_S)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no such environment here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("run", "copied"):
        assert found[name]["output"] == "1000\n", found
    for name in ("attach", "listen"):
        assert found[name]["alive"], found
    return found


def documented(environment):
    """The row of the table in the docs, by command."""
    for line in DOCS.read_text().splitlines():
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if first.replace("`", "").startswith(environment):
            return dict(zip(("run", "copied", "attach", "listen"), cells, strict=True))
    raise AssertionError(f"no row about {environment}")


def check(environment, found, **refusals):
    """Each command works, except those for which a part of the one line is given that says why not; the docs agree."""
    row = documented(environment)
    for name, result in found.items():
        reason = refusals.get(name)
        lines = [line for line in result["errors"].splitlines() if line.startswith("vestige: ")]
        assert len(lines) == len(result["errors"].splitlines()), (name, result)
        if reason is None:
            assert result["works"] and result["code"] == 0, (name, result)
            assert row[name].startswith("works"), (environment, name, row)
        else:
            assert not result["works"] and result["code"] != 0, (name, result)
            assert reason in lines[-1], (name, result)
            assert row[name] == "refused", (environment, name, row)


def test_seccomp_as_docker_has_it(folder, confine):
    check("seccomp as Docker", run_commands(folder, prefix=[confine, "docker"]))


def test_strict_seccomp(folder, confine):
    found = run_commands(folder, prefix=[confine, "strict"])
    assert "no process can be started that copies it (Operation not permitted)" in found["copied"]["errors"]
    check("strict seccomp", found, attach="Operation not permitted")


def test_a_read_only_root(folder):
    shell = f"mount --bind {folder} {folder} && mount -o remount,bind,ro /"
    check("read-only root", run_commands(folder, shell=shell), attach="Read-only file system")


def test_no_home_and_no_other_variables(folder):
    check("no HOME", run_commands(folder, environment={"PATH": os.environ["PATH"]}))


def test_no_proc(folder):
    found = run_commands(folder, shell="umount -l /proc")
    assert "and copied, because it is on an unknown disk" in found["run"]["errors"]
    check("no /proc", found, attach="/proc is not mounted")


def test_a_small_dev_shm(folder):
    check("/dev/shm of 64 MB", run_commands(folder, shell="mount -t tmpfs -o size=64m tmpfs /dev/shm"))


def test_a_control_group_of_256_mb(folder):
    group = Path(f"/sys/fs/cgroup/memory/vestige-test-{os.getpid()}")
    try:
        group.mkdir()
        limit = group / "memory.limit_in_bytes"
        limit.write_text(str(256 << 20))
    except OSError as error:
        pytest.skip(f"no control group here: {error}")
    try:
        prefix = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        check("control group of 256 MB", run_commands(folder, prefix=prefix))
    finally:
        group.rmdir()
