"""Changes of a wheel before it is published, and checks before a release: scripts/wheels/finish.py,
scripts/wheels/adapters.py and scripts/release_check.py.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vestige.torch import build as torch_build

pytestmark = pytest.mark.any_python

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
if not SCRIPTS.exists():
    pytest.skip("only the tests are here, without the scripts", allow_module_level=True)

WHEEL = "vestige-1.2.3-cp312-cp312-manylinux_2_28_x86_64.whl"
INFO = "vestige-1.2.3.dist-info"
LIBRARY = "vestige.libs/libzstd-01234567.so.1.4.8"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release_check = load(SCRIPTS / "release_check.py")
adapters = load(SCRIPTS / "wheels" / "adapters.py")


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "raw" / WHEEL
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("vestige/__init__.py", "")
        made.writestr("vestige.libs/", "")
        made.writestr(LIBRARY, b"a library")
        made.writestr(f"{INFO}/METADATA", "Name: vestige\n")
        made.writestr(
            f"{INFO}/RECORD",
            f"vestige/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n{INFO}/RECORD,,\n",
        )
    return path


def owners(tmp_path, name="libzstd.so.1.4.8"):
    licence = tmp_path / "copyright"
    licence.write_text("BSD\n")
    path = tmp_path / "owners"
    path.write_text(f"{name}\tdeb/debian/libzstd1@1.4.8+dfsg-2.1?arch=amd64&distro=bullseye\t{licence}\n")
    return path


def finish(wheel, folder, owners, *more):
    folder.mkdir(exist_ok=True)
    command = [sys.executable, SCRIPTS / "wheels" / "finish.py", "--owners", owners, *more, wheel, folder]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_finished_wheel_lists_its_libraries_and_has_their_licences(wheel, tmp_path):
    done = finish(wheel, tmp_path / "dist", owners(tmp_path))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "dist" / WHEEL) as made:
        listed = json.loads(made.read(f"{INFO}/sboms/vestige.cdx.json"))
        assert made.read(f"{INFO}/licenses/bundled/libzstd1.txt") == b"BSD\n"
        assert len(made.namelist()) == len(set(made.namelist()))
        assert f"{INFO}/sboms/vestige.cdx.json" in made.read(f"{INFO}/RECORD").decode()
    (library,) = listed["components"]
    assert (library["name"], library["version"]) == ("libzstd1", "1.4.8+dfsg-2.1")
    assert library["purl"].startswith("pkg:deb/debian/libzstd1@1.4.8")
    assert listed["metadata"]["component"]["version"] == "1.2.3"


def test_the_same_wheel_is_finished_to_the_same_bytes(wheel, tmp_path):
    known = owners(tmp_path)
    for name in ("one", "two"):
        assert finish(wheel, tmp_path / name, known).returncode == 0
    assert (tmp_path / "one" / WHEEL).read_bytes() == (tmp_path / "two" / WHEEL).read_bytes()


def test_a_library_of_no_known_package_is_refused(wheel, tmp_path):
    done = finish(wheel, tmp_path / "dist", owners(tmp_path, "libother.so.1"))
    assert done.returncode != 0
    assert "no package is known that libzstd.so.1.4.8 is of" in done.stderr
    assert os.listdir(tmp_path / "dist") == []


# ---- observers that are built ahead of time ---------------------------------------


@pytest.fixture
def with_sources(wheel):
    """A wheel with the sources from which the installed package builds the observer of torch's operators."""
    home = Path(torch_build.HOME)
    with zipfile.ZipFile(wheel, "a") as made:
        for path in sorted(home.rglob("*.cpp")) + sorted(home.rglob("*.h")):
            made.write(path, f"vestige/_torch/{path.relative_to(home)}")
    return wheel


def test_an_observer_is_named_as_the_package_looks_for_it(with_sources, monkeypatch):
    class Torch:
        __version__ = "2.15.0+cpu"
        version = type("version", (), {"git_version": "0123456789abcdef"})
        _C = type("_C", (), {"_GLIBCXX_USE_CXX11_ABI": True})

    with zipfile.ZipFile(with_sources) as made:
        name = adapters.name_of("2.15.0", "0123456789abcdef", made)
    assert name == torch_build.prebuilt_name(Torch)


def test_a_finished_wheel_has_the_observers_of_its_own_sources_alone(with_sources, tmp_path):
    folder = tmp_path / "adapters"
    folder.mkdir()
    with zipfile.ZipFile(with_sources) as made:
        name = adapters.name_of("2.15.0", "0123456789abcdef", made)
    (folder / name).write_bytes(b"a library")
    (folder / name.replace("-cxx11-", "-cxx11-0")).write_bytes(b"of other sources")
    done = finish(with_sources, tmp_path / "dist", owners(tmp_path), "--adapters", folder)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "dist" / WHEEL) as made:
        assert [each for each in made.namelist() if "prebuilt" in each] == [f"vestige/_torch/prebuilt/{name}"]
        assert f"vestige/_torch/prebuilt/{name},sha256=" in made.read(f"{INFO}/RECORD").decode()


def test_a_wheel_without_the_observers_that_it_was_to_have_is_refused(with_sources, tmp_path):
    (tmp_path / "adapters").mkdir()
    done = finish(with_sources, tmp_path / "dist", owners(tmp_path), "--adapters", tmp_path / "adapters")
    assert done.returncode != 0
    assert "was built from its sources" in done.stderr


def test_an_observer_that_needs_more_than_torch_or_an_old_system_has_is_refused(tmp_path, monkeypatch):
    (tmp_path / "symbols").write_text("at_known\n")

    def needs(*lines):
        monkeypatch.setattr(adapters, "run", lambda *_: "\n".join(lines))
        adapters.check(tmp_path / "library.so", tmp_path)

    needs("                 U at_known", "                 U malloc@GLIBC_2.2.5", "                 w weak")
    with pytest.raises(adapters.CannotError, match="at_unknown, which this torch does not define"):
        needs("                 U at_unknown")
    with pytest.raises(adapters.CannotError, match="newer than manylinux_2_28"):
        needs("                 U anything@GLIBCXX_3.4.26")


# ---- before a release ------------------------------------------------------------


def changelog(root, text):
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}")
    return "\n".join(release_check.check_changelog(root, "0.2.0"))


def test_a_changelog_that_is_ready_has_no_problems(tmp_path):
    ready = "## Unreleased\n\n## [0.2.0] – 2026-11-17\n\n### Added\n\n- This.\n\n### Fixed\n\n- That.\n\n## [0.1.0] – 2026-01-02\n"
    assert changelog(tmp_path, ready) == ""


def test_what_a_changelog_lacks_is_named(tmp_path):
    assert "under Unreleased" in changelog(
        tmp_path, "## Unreleased\n\n- A change.\n\n## [0.2.0] – 2026-11-17\n\n### Added\n"
    )
    assert "newest version is 0.1.0" in changelog(tmp_path, "## [0.1.0] – 2026-11-17\n\n### Added\n")
    assert "is no day" in changelog(tmp_path, "## [0.2.0] – unreleased\n\n### Added\n")
    assert "['Added', 'Added']" in changelog(tmp_path, "## [0.2.0] – 2026-11-17\n\n### Added\n\n### Added\n")
    assert "newest first" in changelog(
        tmp_path, "## [0.2.0] – 2026-11-17\n\n### Added\n\n## [0.1.0] – 2026-01-02\n\n## [0.1.1] – 2026-01-01\n"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_tag_of_another_version_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", "v0.3.0")
    assert list(release_check.check_tree(tmp_path, "0.2.0")) == ["the tag is v0.3.0, the version 0.2.0"]
    assert list(release_check.check_tree(tmp_path, "0.3.0")) == []


def test_a_wheel_that_does_not_match_its_record_is_found(wheel, tmp_path):
    finish(wheel, tmp_path / "dist", owners(tmp_path))
    path = tmp_path / "dist" / WHEEL
    assert list(release_check.check_wheel(path)) == [
        f"its RECORD does not have {LIBRARY} as it is",
        f"its RECORD does not have {INFO}/METADATA as it is",
    ]
    newer = path.rename(path.with_name(WHEEL.replace("2_28", "2_34")))
    assert "its tag is not manylinux_2_28, or older" in list(release_check.check_wheel(newer))
