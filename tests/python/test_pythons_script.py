"""scripts/pythons.sh installs interpreters or says in one line why it cannot, and scripts/find_python.sh finds them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

ROOT = Path(__file__).resolve().parents[2]
VERSION = "{}.{}".format(*sys.version_info)


@pytest.fixture
def script(tmp_path):
    """Runs a script with a new cache folder."""

    def run(name, *args, **environment):
        command = [ROOT / "scripts" / name, *args]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **environment}
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment)

    return run


def make_cached(cache, name, program):
    """Makes the files that pythons.sh leaves when it is done, with this interpreter."""
    folder = cache / "vestige" / "pythons" / name
    (folder / "usr" / "bin").mkdir(parents=True)
    (folder / "usr" / "bin" / program).symlink_to(sys._base_executable)
    return folder


def recipe():
    lines = (ROOT / "scripts" / "pythons.sh").read_text().splitlines()
    return next(line.split()[0].removeprefix("recipe=") for line in lines if line.startswith("recipe="))


def tools_without_apt(folder):
    """Makes a folder with the tools that a shell needs, without apt."""
    folder.mkdir()
    for name in "bash cat grep mkdir find head env".split():
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def test_without_apt_one_line_for_each_says_so(script, tmp_path):
    done = script("pythons.sh", "3.14", "3.15-dbg", PATH=tools_without_apt(tmp_path / "bin"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Python 3.14 cannot be had: there is no apt",
        "Python 3.15-dbg cannot be had: there is no apt",
    ]


def test_what_was_brought_is_not_brought_again(script, tmp_path):
    folder = make_cached(tmp_path, "3.14", "python3.14")
    (folder / "recipe").write_text(recipe() + "\n")
    done = script("pythons.sh", "3.14", PATH=tools_without_apt(tmp_path / "bin"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_an_older_script_brought_is_brought_again(script, tmp_path):
    folder = make_cached(tmp_path, "3.14", "python3.14")
    (folder / "recipe").write_text("0\n")
    assert script("pythons.sh", "3.14", PATH=tools_without_apt(tmp_path / "bin")).returncode == 1


@pytest.mark.parametrize("name", ["../../3.14", "3.14 3.15", "3", "--all", "3.14-debug"])
def test_only_names_of_pythons_are_taken(script, tmp_path, name):
    done = script("pythons.sh", name)
    assert done.returncode == 2
    assert "names no Python" in done.stderr
    assert not (tmp_path / "vestige").exists()


def test_one_of_debian_is_found_in_the_cache_alone(script, tmp_path):
    name = VERSION + "-debian"
    done = script("find_python.sh", name)
    assert done.returncode == 1
    assert "scripts/pythons.sh" in done.stderr
    make_cached(tmp_path, name, "python" + VERSION)
    assert os.path.samefile(script("find_python.sh", name).stdout.strip(), sys._base_executable)


def test_what_is_no_debug_build_is_not_taken_for_one(script, tmp_path):
    if hasattr(sys, "gettotalrefcount"):
        pytest.skip("this is a debug build")
    make_cached(tmp_path, VERSION + "-dbg", "python" + VERSION + "-dbg")
    done = script("find_python.sh", VERSION + "-dbg", PATH=tools_without_apt(tmp_path / "bin"))
    assert done.returncode == 1


def test_every_supported_python_is_either_here_or_missing(script):
    here, missing = (script("find_python.sh", way).stdout.split() for way in ("--all", "--missing"))
    assert VERSION in here
    assert sorted(here + missing) == sorted({*here, *missing})
    assert {"3.11", "3.12", "3.13", "3.14", "3.15"} == {*here, *missing}


def test_what_is_supported_is_what_the_package_and_the_documentation_name(script):
    supported = script("find_python.sh", "--all").stdout.split() + script("find_python.sh", "--missing").stdout.split()
    classifiers = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert classifiers == sorted(supported, key=lambda version: int(version[2:]))
    for page in ("README.md", "docs/index.md", "docs/install.md"):
        assert f"CPython {classifiers[0]} to {classifiers[-1]}" in (ROOT / page).read_text()
    (tested,) = re.findall(r"The tests run on ([^A-Z]*)\. ", (ROOT / "docs" / "install.md").read_text())
    assert [release.rpartition(".")[0] for release in re.findall(r"[\d.]+", tested)] == classifiers


def test_the_patch_releases_that_the_documentation_names_are_those_that_tests_ran_on():
    def releases_in(text):
        return set(re.findall(r"\b3\.\d+\.\d+\b", text))

    install = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| (3[\d.]+) ", (ROOT / "proofs" / "results" / "builds.md").read_text(), re.MULTILINE)
    ran = set(rows) | releases_in(re.search(r"The tests run on ([^A-Z]*)\. ", install).group())
    for text in (install, (ROOT / "README.md").read_text()):
        assert releases_in(re.search(r"CPython 3\.\d+ to 3.*?(?=\n\n|\n- )", text, re.DOTALL).group()) == ran
