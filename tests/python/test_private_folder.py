"""Native code is loaded only from folders to which no other user can write."""

import os

import pytest

from vestige.base import private_folder
from vestige.base.private_folder import Refused

pytestmark = pytest.mark.any_python
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
NOBODY = 65534


def test_what_is_made_is_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        private_folder.make(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_a_folder_that_others_may_read_is_closed_to_them(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    private_folder.make(str(tmp_path / "a"))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_a_folder_that_others_may_write_to_is_refused_wherever_it_is_on_the_way(tmp_path, mode):
    inside = tmp_path / "open" / "vestige"
    inside.mkdir(parents=True, mode=0o700)
    os.chmod(tmp_path / "open", mode)
    for path in (inside.parent, inside, inside / "new"):
        with pytest.raises(Refused, match=f"other users can write to {tmp_path}/open$"):
            private_folder.make(str(path))
    assert not (inside / "new").exists()


def test_where_others_cannot_touch_what_is_not_theirs_is_safe(tmp_path):
    (tmp_path / "sticky").mkdir()
    os.chmod(tmp_path / "sticky", 0o1777)
    private_folder.make(str(tmp_path / "sticky" / "own"))
    assert (tmp_path / "sticky" / "own").stat().st_mode & 0o777 == 0o700


@needs_root
def test_what_belongs_to_another_user_is_refused(tmp_path):
    theirs = tmp_path / "theirs"
    (theirs / "own").mkdir(parents=True, mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    (tmp_path / "sticky").mkdir()
    os.chmod(tmp_path / "sticky", 0o1777)
    os.symlink(tmp_path, tmp_path / "sticky" / "planted")
    os.chown(tmp_path / "sticky" / "planted", NOBODY, NOBODY, follow_symlinks=False)
    os.symlink(theirs, tmp_path / "link")
    for path in (theirs, theirs / "own", tmp_path / "sticky" / "planted" / "x", tmp_path / "link", tmp_path / "link/x"):
        with pytest.raises(Refused, match="belongs to another user"):
            private_folder.make(str(path))


def test_links_of_ones_own_are_followed_and_circles_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    os.symlink("real", tmp_path / "link")
    os.symlink("../link", tmp_path / "real" / "back")
    private_folder.make(str(tmp_path / "link" / "back" / "new"))
    assert (tmp_path / "real" / "new").is_dir()
    os.symlink("round", tmp_path / "round")
    with pytest.raises(Refused, match="too many links"):
        private_folder.check(str(tmp_path / "round"))


@needs_root
def test_files_of_others_and_files_that_others_can_write_are_not_ones_own(tmp_path):
    file = tmp_path / "x"
    file.touch(mode=0o600)
    assert private_folder.is_own_file(str(file))
    os.symlink(file, tmp_path / "link")
    assert not private_folder.is_own_file(str(tmp_path / "link"))
    os.chmod(file, 0o622)
    assert not private_folder.is_own_file(str(file))
    os.chmod(file, 0o600)
    os.chown(file, NOBODY, NOBODY)
    assert not private_folder.is_own_file(str(file))


@needs_root
def test_another_user_refuses_what_root_does_not_own_and_takes_what_is_its_own(tmp_path):
    os.chmod(tmp_path, 0o755)
    (tmp_path / "own").mkdir(mode=0o700)
    os.chown(tmp_path / "own", NOBODY, NOBODY)
    (tmp_path / "other").mkdir(mode=0o755)
    os.chown(tmp_path / "other", NOBODY - 1, NOBODY - 1)
    way = tmp_path
    while way.parent != way:  # pytest's folders are closed to others
        if not way.stat().st_mode & 0o001:
            os.chmod(way, way.stat().st_mode | 0o011)
        way = way.parent
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            private_folder.make(str(tmp_path / "own" / "new"))
            try:
                private_folder.make(str(tmp_path / "other"))
            except Refused:
                code = 7
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
