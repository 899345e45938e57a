"""Recordings are private to their user, and vestige neither writes to nor trusts files that another user planted."""

import json
import os
import stat
import subprocess
import sys
import threading

import pytest

import vestige
from traces import record, steps
from vestige import Trace, profile
from vestige._core import View, pack, recover
from vestige.base.new_files import private_folder, replacing
from vestige.torch.resources import folder_for

pytestmark = pytest.mark.any_python

FORKS = """
import os, sys
if (pid := os.fork()) == 0:
    sys.exit(len("child"))
os.waitpid(pid, 0)
"""


def mode(path):
    return os.stat(path).st_mode & 0o777


@pytest.fixture(params=[0o022, 0], ids=["umask 022", "umask 0"])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_what_is_recorded_is_for_its_owner_alone(tmp_path, umask):
    with profile(output=tmp_path / "t.vst"):
        vestige.snapshot(tmp_path / "snapshot.vst")
    recover(str(tmp_path / "t.vst"), str(tmp_path / "recovered.vst"))
    View(str(tmp_path / "t.vst"))
    with vestige.memory.track(tmp_path / "memory.vst"):
        pass
    command = [sys.executable, "-m", "vestige", "run", "-q", "-o", str(tmp_path / "root.vst"), "-c", FORKS]
    assert subprocess.run(command).returncode == 0
    files = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert {"t.vst", "snapshot.vst", "recovered.vst", "t.vst.view", "memory.vst", "root.vst"} <= files.keys()
    assert len(files) == 7  # including the child's file
    assert set(files.values()) == {0o600}


def test_copies_of_a_trace_are_for_those_who_may_read_it(tmp_path, umask):
    path = record(tmp_path / "t.vst")
    path.chmod(0o664)
    recover(str(path), str(tmp_path / "recovered.vst"))
    View(str(path))
    pack(str(path), str(tmp_path / "packed.vst"))
    assert mode(tmp_path / "recovered.vst") == mode(tmp_path / "packed.vst") == 0o664
    assert mode(tmp_path / "t.vst.view") == 0o644


def test_an_export_is_a_file_like_any_other(tmp_path, umask):
    Trace(str(record(tmp_path / "t.vst"))).export(str(tmp_path / "t.json"))
    assert mode(tmp_path / "t.json") == 0o666 & ~umask


def test_an_export_to_a_pipe_goes_through_it_and_leaves_it_there(tmp_path):
    """The pipe stays a pipe, as /dev/null and /dev/stdout must."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    Trace(str(record(tmp_path / "t.vst"))).export(str(pipe))
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    reader.join(60)
    assert "traceEvents" in json.loads(got[0])
    assert sorted(os.listdir(tmp_path)) == ["pipe.json", "t.vst"]


def is_built(path):
    return View(str(path)).info()["built"]


def test_an_index_that_others_may_have_written_is_not_believed(tmp_path):
    path = record(tmp_path / "t.vst", steps(10))
    index = tmp_path / "t.vst.view"
    assert is_built(path) and not is_built(path)
    index.chmod(0o620)
    assert is_built(path)
    assert mode(index) == 0o600 and not is_built(path)
    index.chmod(0o602)
    assert is_built(path) and not is_built(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_index_of_another_user_is_not_believed_but_that_of_the_traces_owner_is(tmp_path):
    path = record(tmp_path / "t.vst", steps(10))
    assert is_built(path)
    os.chown(tmp_path / "t.vst.view", 12345, -1)
    assert is_built(path) and not is_built(path)
    os.chown(path, 12345, -1)
    os.chown(tmp_path / "t.vst.view", 12345, -1)
    assert not is_built(path)


def test_a_file_that_is_written_replaces_a_link_and_leaves_what_it_led_to(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").symlink_to(tmp_path / "precious")
    with replacing(str(tmp_path / "out")) as name:
        assert os.path.dirname(name) == str(tmp_path) and mode(name) & 0o077 == 0o077 & ~current_umask() & 0o066
        with open(name, "w") as file:
            file.write("new")
    assert (tmp_path / "precious").read_text() == "mine" and (tmp_path / "out").read_text() == "new"
    with pytest.raises(KeyError), replacing(str(tmp_path / "out")):
        raise KeyError
    assert sorted(os.listdir(tmp_path)) == ["out", "precious"] and (tmp_path / "out").read_text() == "new"
    with replacing("/dev/null") as name:
        assert name == "/dev/null"


def current_umask():
    before = os.umask(0)
    os.umask(before)
    return before


def test_resources_go_only_into_a_folder_that_is_ours(tmp_path, umask):
    folder = folder_for(str(tmp_path / "a.json"), create=True)
    assert mode(folder) == 0o700 and folder_for(str(tmp_path / "a.json"), create=False) == folder
    os.symlink(tmp_path, tmp_path / "b_resources")
    with pytest.warns(UserWarning, match="resources are not collected: .*b_resources"):
        assert folder_for(str(tmp_path / "b.json"), create=True) is None
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError):
        private_folder(str(tmp_path / "open"))
    with pytest.raises(PermissionError):
        private_folder(__file__)


def test_an_observers_file_is_not_made_where_a_link_leads(tmp_path):
    from vestige.torch.execution_trace import _check_writable

    (tmp_path / "et.json").symlink_to(tmp_path / "victim")
    _check_writable(str(tmp_path / "et.json"))
    assert os.listdir(tmp_path) == ["et.json"]
    _check_writable(str(tmp_path / "new.json"))
    assert os.listdir(tmp_path) == ["et.json"]
    (tmp_path / "there.json").write_text("x")
    _check_writable(str(tmp_path / "there.json"))
    assert (tmp_path / "there.json").read_text() == "x"
    with pytest.raises(OSError):
        _check_writable(str(tmp_path / "no folder" / "et.json"))
