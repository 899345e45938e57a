"""Commands with several traces, with folders, or with a trace whose process started others."""

import json
import os
import re

import pytest

from traces import family, patch, record, steps
from vestige import Trace
from vestige._core import export_traces
from vestige.reading.exports import FORMATS, suffixes

pytestmark = pytest.mark.any_python


def pids(workplace, *args):
    """Returns the processes that a command reads, in the command's order."""
    result = workplace.vestige("info", "--json", *args)
    assert result.stderr == ""
    facts = json.loads(result.stdout)
    return [each["pid"] for each in facts.get("processes", [facts])]


def processes(document):
    """Returns {pid: name} of an exported document."""
    events = [event for event in document["traceEvents"] if event["name"] == "process_name"]
    assert len(events) == len({event["pid"] for event in events})
    return {event["pid"]: event["args"]["name"] for event in events}


def load(path):
    return json.loads(path.read_bytes())


# ---- which traces ------------------------------------------------------


def test_a_file_stands_for_itself_and_its_children(workplace):
    family(workplace.path, 2001, 2000)
    os.rename(workplace.path / "t.2001.vst", workplace.path / "t.2001.1.vst")
    assert pids(workplace, "t.vst") == [1000, 2001, 2000]  # children in the order of their start
    assert pids(workplace, "--no-children", "t.vst") == [1000]
    assert pids(workplace, "t.2000.vst") == [2000]


def test_files_that_are_merely_named_like_children_are_left_alone(workplace):
    family(workplace.path, 2000)
    patch(record(workplace.path / "t.3000.vst"), pid=3000)
    patch(record(workplace.path / "t.3001.vst", vestige_root="0" * 32), pid=3001)
    patch(record(workplace.path / "t.x.vst"), pid=3002)
    patch(record(workplace.path / "t2.2000.vst"), pid=3003)
    assert pids(workplace, "t.vst") == [1000, 2000]


def test_a_folder_stands_for_all_traces_in_it_but_snapshots(workplace):
    folder = workplace.path / "traces"
    folder.mkdir()
    family(folder, 2000)
    patch(record(folder / "other.vst"), pid=3000)
    patch(record(folder / "t-snapshot1.vst"), pid=4000)
    (folder / "notes.txt").write_text("no trace, and not called one")
    assert pids(workplace, "traces") == [1000, 3000, 2000]
    assert pids(workplace, "--no-children", "traces") == [1000, 3000]
    assert pids(workplace, "traces/t-snapshot1.vst") == [4000]


def test_files_and_folders_mix_and_nothing_is_taken_twice(workplace):
    folder = workplace.path / "traces"
    folder.mkdir()
    family(folder, 2000)
    patch(record(workplace.path / "single.vst"), pid=5)
    (workplace.path / "link.vst").symlink_to("single.vst")
    args = ["single.vst", "traces/t.vst", "traces", "traces/t.2000.vst", "link.vst", "traces"]
    assert sorted(pids(workplace, *args)) == [5, 1000, 2000]


def test_roots_come_first_then_ranks_then_the_order_of_starting(workplace):
    root = patch(record(workplace.path / "t.vst"), pid=1)
    root_id = Trace(str(root)).info()["trace_id"]
    for pid, rank in ((12, 2), (10, 0), (11, 1), (14, None), (13, None)):
        info = {} if rank is None else {"distributedInfo": {"rank": rank}}
        patch(record(workplace.path / f"t.{pid}.vst", vestige_root=root_id, **info), pid=pid)
    assert pids(workplace, "t.vst") == [1, 10, 11, 12, 14, 13]


@pytest.mark.parametrize("command", [["info"], ["report"], ["export", "-o", "x.json"]])
def test_one_that_cannot_be_read_is_told_and_the_rest_goes_on(workplace, command):
    family(workplace.path, 2000)
    (workplace.path / "bad.vst").write_text("once upon a time")
    result = workplace.vestige(command[0], "bad.vst", "t.vst", "absent.vst", *command[1:])
    lines = ["bad.vst: not a vestige trace", "absent.vst: No such file or directory"]
    told = result.stderr.splitlines()
    assert result.returncode == 1
    if command[0] == "export":
        assert told.pop().startswith("vestige: wrote x.json (")
        assert len(processes(load(workplace.path / "x.json"))) == 2
    else:
        assert "2 processes" in result.stdout
    assert told == [f"vestige: {line}" for line in lines]


def test_where_none_can_be_read_each_is_told(workplace):
    result = workplace.vestige("export", "a.vst", "b.vst", "-o", "x.json")
    assert (result.returncode, result.stdout) == (1, "")
    lines = ["a.vst: No such file or directory", "b.vst: No such file or directory"]
    assert result.stderr.splitlines() == [f"vestige: {line}" for line in lines]
    assert not (workplace.path / "x.json").exists()


def test_what_is_no_trace_in_a_folder_or_among_children_is_skipped_with_a_line(workplace):
    family(workplace.path, 2000)
    (workplace.path / "t.77.vst").write_text("no trace")
    for name in (".", "t.vst"):
        result = workplace.vestige("report", name)
        assert result.returncode == 0
        assert re.fullmatch(r"vestige: (\./)?t\.77\.vst: not a vestige trace; skipped\n", result.stderr)
        assert "2 processes" in result.stdout


# ---- export ------------------------------------------------------------


def test_export_writes_one_timeline_of_all_processes(workplace):
    family(workplace.path, 2000, 2001)
    result = workplace.vestige("export", "t.vst", "-o", "all.json")
    assert (result.returncode, result.stdout) == (0, "")
    document = load(workplace.path / "all.json")
    assert sorted(processes(document)) == [1000, 2000, 2001]
    arrows = [event for event in document["traceEvents"] if event.get("cat") == "process"]
    assert [(event["ph"], event["pid"]) for event in arrows] == [("s", 1000), ("f", 2001), ("s", 1000), ("f", 2000)]
    ids = [event["args"]["Ev Idx"] for event in document["traceEvents"] if "Ev Idx" in event.get("args", {})]
    assert len(ids) == len(set(ids)) > 0


def test_export_takes_the_children_too_unless_told_not_to(workplace):
    family(workplace.path, 2000)
    assert workplace.vestige("export", "t.vst", "-o", "with.json").returncode == 0
    assert workplace.vestige("export", "t.vst", "-o", "without.json", "--no-children").returncode == 0
    assert sorted(processes(load(workplace.path / "with.json"))) == [1000, 2000]
    assert sorted(processes(load(workplace.path / "without.json"))) == [1000]
    assert load(workplace.path / "with.json")["trace_id"] == load(workplace.path / "without.json")["trace_id"]


def test_processes_of_one_pid_stay_apart(workplace):
    for name in ("a", "b"):
        patch(record(workplace.path / f"{name}.vst", host_name=name), pid=77)
    assert workplace.vestige("export", "a.vst", "b.vst", "-o", "all.json").returncode == 0
    document = load(workplace.path / "all.json")
    assert sorted(processes(document)) == [77, 78]
    labels = {e["pid"]: e["args"]["labels"] for e in document["traceEvents"] if e["name"] == "process_labels"}
    assert labels == {77: "CPU", 78: "CPU, pid 77, on b"}


def test_each_process_is_named_by_rank_and_command_line(workplace):
    for rank in (0, 1):
        facts = {"vestige_command": ["/usr/bin/python", "train.py", "--lr", "1"], "vestige_process_name": "train.py"}
        path = record(workplace.path / f"{rank}.vst", distributedInfo={"rank": rank, "world_size": 2}, **facts)
        patch(path, pid=10 + rank)
    assert workplace.vestige("export", "1.vst", "0.vst", "-o", "all.json").returncode == 0
    document = load(workplace.path / "all.json")
    assert processes(document) == {10: "rank 0: python train.py --lr 1", 11: "rank 1: python train.py --lr 1"}
    assert document["distributedInfo"] == {"rank": 0, "world_size": 2}


def there_are():
    assert all(pattern in suffixes() for each in FORMATS.values() for pattern in each.patterns)
    return f"there are {suffixes()}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["export", "-o", "x.json"], "the following arguments are required: FILE; see vestige export --help"),
        (["export", "t.vst", "-o", "x.xml"], f"x.xml: no format has this suffix; {there_are()}"),
        (["export", "t.vst", "-o", "t.json"], "t.json: already exists; --force overwrites it"),
        (["export", "t.vst", "u.vst"], "several traces need a name for the file to write: -o OUT"),
        (["export", "."], "several traces need a name for the file to write: -o OUT"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(workplace, args, message):
    record(workplace.path / "t.vst")
    (workplace.path / "t.json").touch()
    result = workplace.vestige(*args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"vestige: {message}\n")


def test_the_function_refuses_what_is_no_trace_or_there_twice(tmp_path):
    trace = Trace(str(record(tmp_path / "t.vst")))
    for traces, error in (([], ValueError), ([trace, trace], RuntimeError), ([trace, 5], TypeError)):
        with pytest.raises(error):
            export_traces(traces, str(tmp_path / "x.json"))
    with pytest.raises(ValueError, match="unknown format"):
        export_traces([trace], str(tmp_path / "x.xml"))
    assert not list(tmp_path.glob("x.*"))
    export_traces([trace], str(tmp_path / "x.json"))
    assert trace.info()["clean"]


# ---- info and report ---------------------------------------------------


def test_info_tells_of_all_and_of_each(workplace):
    family(workplace.path, 2000)
    text = workplace.vestige("info", "t.vst").stdout
    lines = text.splitlines()
    assert lines[:2] == ["2 processes", "  ended    2 clean"]
    assert [line for line in lines if not line.startswith(" ")] == ["2 processes", "t.vst", "t.2000.vst"]
    assert re.search(r"process  2000 on .*, forked by 1000\n", text)


def test_info_as_json_has_a_list_of_processes(workplace):
    family(workplace.path, 2000)
    facts = json.loads(workplace.vestige("info", "--json", "t.vst").stdout)
    assert [each["file"] for each in facts["processes"]] == ["t.vst", "t.2000.vst"]
    alone = json.loads(workplace.vestige("info", "--json", "--no-children", "t.vst").stdout)
    assert facts["processes"][0] == {"file": "t.vst", **alone}


def test_info_tells_how_each_ended(workplace):
    workplace.write("die.py", "import os\nos.kill(os.getpid(), 9)")
    workplace.trace("die.py")
    record(workplace.path / "u.vst")
    text = workplace.vestige("info", ".").stdout
    assert "  ended    1 clean, 1 torn\n" in text
    assert "t.vst\n  ended    torn, the process was killed, crashed or called os.exec*;" in text


def test_report_sums_functions_over_all_processes_and_lists_those(workplace):
    for rank, count in ((0, 3), (1, 4)):
        path = record(workplace.path / f"{rank}.vst", steps(count), distributedInfo={"rank": rank})
        patch(path, pid=100 + rank)
    text = workplace.vestige("report", "0.vst", "1.vst").stdout
    assert re.match(r"[\d.]+ \w+, \d+ calls, 2 processes, 2 threads\n", text)
    assert re.search(r"^ +7 .* step$", text, re.MULTILINE)
    assert re.search(r"^ +[\d.]+ \w+ +\d+ +101 +1  clean ", text, re.MULTILINE)


# ---- recover -----------------------------------------------------------


def test_recover_takes_the_children_along_under_the_new_name(workplace):
    family(workplace.path, 2000)
    assert workplace.vestige("recover", "t.vst", "-o", "new.vst").returncode == 0
    assert pids(workplace, "new.vst") == [1000, 2000]
    assert (workplace.path / "new.2000.vst").read_bytes() == (workplace.path / "t.2000.vst").read_bytes()
    result = workplace.vestige("recover", "t.vst", "-o", "new.vst")
    assert (result.returncode, result.stderr) == (2, "vestige: new.vst: already exists; --force overwrites it\n")
    assert workplace.vestige("recover", "t.vst", "-o", "t.vst", "--force").returncode == 0
    assert workplace.vestige("recover", "t.vst", "-o", "one.vst", "--no-children").returncode == 0
    assert not (workplace.path / "one.2000.vst").exists()


def test_recover_of_several_writes_to_a_folder(workplace):
    folder = workplace.path / "traces"
    folder.mkdir()
    family(folder, 2000)
    record(workplace.path / "u.vst")
    (folder / "bad.vst").write_text("no trace")
    result = workplace.vestige("recover", "u.vst", "traces", "-o", "whole/inner")
    assert (result.returncode, result.stdout) == (0, "")
    assert sorted(os.listdir(workplace.path / "whole/inner")) == ["t.2000.vst", "t.vst", "u.vst"]
    again = workplace.vestige("recover", "u.vst", "traces", "-o", "whole/inner")
    assert again.returncode == 2
    assert "already exists" in again.stderr
    clash = workplace.vestige("recover", "traces/t.vst", "whole/inner/t.vst", "-o", "third")
    assert clash.returncode == 2
    assert clash.stderr == "vestige: two traces are called t.vst: recover them one by one\n"
