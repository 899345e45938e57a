"""Ranks: where vestige finds a process's rank, and where the rank appears."""

import json
import os
import re
import sys
import types

import pytest

from vestige import Trace, profile

pytestmark = pytest.mark.any_python

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def recorded(tmp_path, **arguments):
    """Returns distributedInfo of a recording with these arguments."""
    with profile(output=str(tmp_path / "t.vst"), overwrite=True, **arguments):
        pass
    text = Trace(str(tmp_path / "t.vst")).metadata().get("distributedInfo")
    return None if text is None else json.loads(text)


def test_without_a_rank_there_is_no_metadata(tmp_path):
    assert recorded(tmp_path) is None
    assert recorded(tmp_path, world_size=3, local_rank=1) is None


def test_ranks_come_from_the_environment(tmp_path, environment):
    environment.setenv("RANK", "3")
    assert recorded(tmp_path) == {"rank": 3}
    environment.setenv("WORLD_SIZE", "8")
    environment.setenv("LOCAL_RANK", "1")
    assert recorded(tmp_path) == {"rank": 3, "world_size": 8, "local_rank": 1}


def test_arguments_come_before_the_environment(tmp_path, environment):
    environment.setenv("RANK", "3")
    environment.setenv("WORLD_SIZE", "8")
    assert recorded(tmp_path, rank=0, local_rank=0) == {"rank": 0, "world_size": 8, "local_rank": 0}
    assert recorded(tmp_path, rank=9) == {"rank": 9}  # the environment's world size of 8 cannot be right


@pytest.mark.parametrize("value", ["", "-1", "one", "1.0", "٣", " 1", "9" * 30])
def test_nonsense_in_the_environment_is_ignored(tmp_path, environment, value):
    environment.setenv("RANK", value)
    assert recorded(tmp_path) is None
    environment.setenv("RANK", "0")
    environment.setenv("WORLD_SIZE", value)
    environment.setenv("LOCAL_RANK", value)
    assert recorded(tmp_path) == {"rank": 0}
    environment.setenv("WORLD_SIZE", "0")
    assert recorded(tmp_path) == {"rank": 0}


def test_a_rank_beyond_the_environments_world_is_ignored(tmp_path, environment):
    environment.setenv("RANK", "8")
    environment.setenv("WORLD_SIZE", "8")
    assert recorded(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rank": -1}, ValueError, "rank must be at least 0, not -1"),
        ({"world_size": 0}, ValueError, "world_size must be at least 1, not 0"),
        ({"local_rank": -5}, ValueError, "local_rank must be at least 0, not -5"),
        ({"rank": "1"}, TypeError, "rank must be an int, not str"),
        ({"rank": True}, TypeError, "rank must be an int, not bool"),
        ({"rank": 4, "world_size": 4}, ValueError, "rank 4 is not below world_size, which is 4"),
    ],
)
def test_wrong_arguments_are_errors(arguments, error, message):
    with pytest.raises(error) as caught:
        profile(**arguments)
    assert str(caught.value) == message


def test_the_backend_is_told_where_torch_knows_it(tmp_path, environment):
    module = types.ModuleType("torch.distributed")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module.get_backend = lambda: "gloo"
    environment.setitem(sys.modules, "torch.distributed", module)
    assert list(recorded(tmp_path, rank=1, world_size=2).items()) == [
        ("backend", "gloo"),
        ("rank", 1),
        ("world_size", 2),
    ]
    del module.get_backend
    assert recorded(tmp_path, rank=1) == {"rank": 1}


def test_the_program_may_say_it_better(tmp_path):
    prof = profile(output=str(tmp_path / "t.vst"), rank=1)
    prof.add_metadata_json("distributedInfo", '{"rank": 7}')
    with prof:
        pass
    assert json.loads(Trace(str(tmp_path / "t.vst")).metadata()["distributedInfo"]) == {"rank": 7}


def test_an_export_has_the_rank_where_other_programs_look_for_it(workplace):
    workplace.write("work.py", "pass")
    result = workplace.trace("work.py", env={**os.environ, "RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4"})
    assert result.returncode == 0, result.stderr
    assert workplace.vestige("export", "t.vst", "-o", "t.json").returncode == 0
    text = (workplace.path / "t.json").read_text()
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == "2"  # as HTA reads the rank
    document = json.loads(text)
    assert document["distributedInfo"] == {"rank": 2, "world_size": 4, "local_rank": 0}
    labels = [event["args"]["labels"] for event in document["traceEvents"] if event["name"] == "process_labels"]
    assert labels == ["rank 2, CPU"]
    assert ", rank 2\n" in workplace.vestige("info", "t.vst").stdout


def test_run_takes_ranks_from_the_environment(workplace):
    workplace.write("work.py", "pass")
    workplace.trace("work.py", env={**os.environ, "RANK": "1", "WORLD_SIZE": "2"})
    facts = json.loads(workplace.vestige("info", "--json", "t.vst").stdout)
    assert facts["metadata"]["distributedInfo"] == {"rank": 1, "world_size": 2}
