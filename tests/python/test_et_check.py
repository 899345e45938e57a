"""`vestige et check`: accepts a correct execution trace; finds each planted defect at its line, and no other."""

import gzip
import json

import pytest

from handmade_graph import attribute, find, good_document, node, tensor, timeline_of
from vestige.cli import Failure
from vestige.cli.et import stream as et_stream
from vestige.cli.et.command import main

pytestmark = pytest.mark.any_python


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Runs `et check` on a document or text; returns the exit code and the lines without the summary."""
    monkeypatch.chdir(tmp_path)

    def run(document, *options, timeline=None, name="et.json"):
        text = document if isinstance(document, (str, bytes)) else json.dumps(document, indent=1)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        if timeline is not None:
            (tmp_path / "t.json").write_text(json.dumps(timeline))
            options = ("--timeline", "t.json", *options)
        code = main(["check", name, *options])
        *lines, last = capsys.readouterr().out.splitlines()
        return code, lines, last

    return run


def set_attribute(number, name, value):
    def damage(document):
        attribute(find(document, number), name)["value"] = value

    return damage


def set_field(number, name, value):
    def damage(document):
        find(document, number)[name] = value

    return damage


def set_input(number, part, index, value):
    def damage(document):
        find(document, number)["inputs"][part][index] = value

    return damage


def edit_output(number, field, value):
    """Returns a change of one field of the first output, which is a tensor."""

    def damage(document):
        find(document, number)["outputs"]["values"][0][field] = value

    return damage


def drop_root(document):
    document["nodes"].pop()


def make_cycle(document):
    find(document, 11)["ctrl_deps"] = 13


def swap_attributes(document):
    attributes = find(document, 13)["attrs"]
    attributes[0], attributes[1] = attributes[1], attributes[0]


def give_two_storages(document):
    """Gives a second storage to one tensor in one list."""
    find(document, 15)["inputs"]["values"][0][1][0] = 36


DAMAGES = {
    "another schema": (
        lambda document: document.update(schema="1.1.0-chakra.0.0.4"),
        "schema is '1.1.0-chakra.0.0.4', not '1.1.1-chakra.0.0.4'",
    ),
    "no finish_ts": (lambda document: document.pop("finish_ts"), "has no finish_ts"),
    "an id twice": (set_field(16, "id", 14), "node 14: is the id of two nodes, aten::select and aten::index"),
    "no process root": (
        drop_root,
        "there is no root of the process, [pytorch|profiler|execution_trace|process]",
    ),
    "a parent that is none": (
        set_field(11, "ctrl_deps", 99),
        "node 11: ctrl_deps 99 does not exist; 2 more below it cannot be reached from the root",
    ),
    "a cycle": (make_cycle, "node 11: is below itself: 11 → 13 → 11"),
    "no outputs": (lambda document: find(document, 14).pop("outputs"), "node 14: has no outputs"),
    "a name that is a number": (set_field(21, "name", 5), "node 21: name is 5, not a string"),
    "attributes in another order": (
        swap_attributes,
        (
            "node 13: attributes are not in their order: fw_parent, rf_id, seq_id, scope, tid, fw_tid, op_schema, "
            "kernel_backend, kernel_file, tensor_range"
        ),
    ),
    "an attribute that is missing": (
        lambda document: find(document, 13)["attrs"].pop(2),
        "node 13: has no attribute seq_id",
    ),
    "a negative number": (
        set_attribute(21, "seq_id", -2),
        "node 21: seq_id is -2, not an integer of at least -1",
    ),
    "more values than types": (
        lambda document: find(document, 13)["inputs"]["types"].pop(),
        "node 13: inputs have 3 values, 3 shapes, 2 types, 3 strides",
    ),
    "a list nested otherwise": (
        lambda document: find(document, 15)["inputs"]["shapes"][0].pop(),
        "node 15: input 0: shape has 1 elements, but the type GenericList[Tensor(float),Tensor(float)] has 2",
    ),
    "five fields of a tensor": (
        lambda document: find(document, 13)["outputs"]["values"][0].pop(),
        "node 13: output 0: is an array of 5, not a tensor's six fields",
    ),
    "a negative offset": (
        edit_output(13, 2, -1),
        "node 13: output 0: a tensor's field is -1, not an unsigned integer",
    ),
    "an offset of more than 64 bits": (
        edit_output(13, 2, 1 << 64),
        "node 13: output 0: a tensor's field is 18446744073709551616, not an unsigned integer",
    ),
    "an offset that is a truth value": (
        edit_output(13, 2, False),
        "node 13: output 0: a tensor's field is a boolean, not an unsigned integer",
    ),
    "a device that is a number": (
        edit_output(13, 5, 0),
        "node 13: output 0: a tensor's device is 0, not a string",
    ),
    "a number of elements": (
        edit_output(13, 3, 33),
        "node 13: output 0: numel is 33, but the shape [2, 16] has 32",
    ),
    "a view beyond its base": (
        edit_output(14, 2, 17),
        "node 14: tensor 36 is bytes 68 to 132 of storage 35, outside of tensor 34, 0 to 128, that it is a view of",
    ),
    "two storages of one tensor": (
        give_two_storages,
        "node 15: tensor 36 is both [36, 35, 16, 16, 4, 'cpu'] and [36, 43, 0, 2, 4, 'cpu'] among the inputs",
    ),
    "a size of elements": (edit_output(13, 4, 8), "node 13: output 0: itemsize is 8, but the type is Tensor(float)"),
    "a value of another type": (
        set_input(10, "values", 0, "yes"),
        "node 10: input 0: is a string, which is not a Bool",
    ),
    "a forward parent that is none": (set_attribute(21, "fw_parent", 77), "node 21: fw_parent 77 does not exist"),
    "a record function twice": (set_attribute(14, "rf_id", 6), "node 15: rf_id 6 is also that of node 14"),
    "no record function": (set_attribute(14, "rf_id", 0), "node 14: rf_id is 0"),
    "another thread's number": (
        set_attribute(21, "tid", 1),
        "node 21: tid is 1, but that of its thread (node 3) is 2",
    ),
    "two threads of one number": (
        lambda document: document["nodes"].insert(0, node(50, "[pytorch|profiler|execution_trace|thread]", 1, tid=2)),
        "node 3: is a second root of thread 2, after node 50",
    ),
    "a second process root": (
        lambda document: document["nodes"].append(node(50, "[pytorch|profiler|execution_trace|process]", 1, tid=0)),
        "node 50: is a second root of the process, after node 1",
    ),
    "a tensor with the id of a node": (
        lambda document: document["nodes"].insert(0, node(37, "aten::add", 2, rf_id=50)),
        "node 37: is also the id of a tensor or of a storage",
    ),
    "an operator without a thread": (
        set_field(20, "ctrl_deps", 1),
        "node 20: is below the process's root, but below no thread's",
    ),
    "ranges of an input that is none": (
        set_attribute(16, "tensor_range", '{"2":[0,4]}'),
        "node 16: tensor_range '{\"2\":[0,4]}' does not have the ranges of its inputs",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_planted_defect_is_found_and_nothing_else(check, name):
    damage, expected = DAMAGES[name]
    document = good_document()
    damage(document)
    code, lines, last = check(document)
    assert lines == [f"et.json: {expected}"]
    assert code == 1 and last.endswith("; 1 defect")


def test_a_good_trace_is_clean_plain_or_gzipped(check):
    summary = "12 nodes, 2 threads, 14 ids of tensors and storages; no defects"
    assert check(good_document()) == (0, [], f"et.json: {summary}")
    packed = gzip.compress(json.dumps(good_document()).encode())
    assert check(packed, name="et.json.gz") == (0, [], f"et.json.gz: {summary}")


def test_a_trace_is_read_alike_in_pieces_of_any_size(check, monkeypatch):
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(et_stream, "CHUNK", size)
        assert check(good_document())[0] == 0


def test_what_torch_writes_of_values_is_no_defect(check):
    document = good_document()
    rows = [
        ([80, 0, 0, 0, 0, ""], [], "Tensor(nullptr (uninitialized))", []),
        ([81, 0, 0, 0, 0, ""], [2, 2], "Tensor(float)", [0, 0]),  # sparse
        ([92, 0, 0, 4, 4, "cpu"], [2, 2], "Tensor(float)", []),  # the same, ours
        ([93, 0, 0, 0, 4, "cpu"], [], "Tensor(float)", []),  # sizes that are symbols
        ([82, 83, 0, 18, 4, "cpu"], [[2, 3], [4, 3]], "Tensor(float)", [[3, 1], [3, 1]]),  # nested
        ([84, 85, 3, 0, 4, "cpu"], [0, 3], "Tensor(float)", [3, 1]),
        ([86, 87, 0, 15, 4, "cpu"], [3, 5], "Tensor(float)", [1, 0]),  # expanded
        ([88, 89, 0, 1, 8, "cpu"], [], "Tensor(c10::complex<float>)", []),
        ([], [], "GenericList[]", []),
        (
            [[1, "nan"], [[90, 91, 0, 2, 4, "cpu"], "<None>"]],
            [[[], []], [[2], []]],
            "Tuple[GenericList[Int,Double],Tuple[Tensor(float),None]]",
            [[[], []], [[1], []]],
        ),
        ("<GenericDict>", [], "GenericDict", []),
        (-1, [], "Int", []),
    ]
    inputs = {name: [row[k] for row in rows] for k, name in enumerate(("values", "shapes", "types", "strides"))}
    document["nodes"].insert(0, node(60, "odd", 2, inputs, rf_id=60))
    document["nodes"][0]["attrs"].append({"name": "pg_name", "type": "string", "value": "0"})
    assert check(document)[:2] == (0, [])


# Changes of the text; where they break it (behind these words, or so far from the end); and the expected message.
BROKEN = {
    "a quote in a name": (lambda t: t.replace("aten::select", 'aten::"select'), 'aten::"', "expecting ',' delimiter"),
    "a line break in a name": (
        lambda t: t.replace("aten::sel", "aten:: \n"),
        "aten:: ",
        "invalid control character at",
    ),
    "NaN": (lambda t: t.replace("2.5", "NaN"), "    true,\n     ", "NaN is not JSON"),
    "a comma too many": (lambda t: t.replace("4711,", "4711,,"), "4711,", "expecting value"),
    "cut off in a node": (lambda t: t[:9000], 0, "the file is cut off"),
    "cut off after the nodes": (lambda t: t[: t.index(' "finish_ts"')], 0, "the file is cut off"),
    "more after the end": (lambda t: t + "}", -1, "there is more after the end of the document"),
    "nothing": (lambda t: "", 0, "the document is not an object"),
    "an array": (lambda t: "[]", -2, "the document is not an object"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_json_is_one_line_that_says_where(check, name):
    damage, where, what = BROKEN[name]
    text = damage(json.dumps(good_document(), indent=1))
    at = len(text) + where if isinstance(where, int) else text.index(where) + len(where)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    code, lines, _ = check(text)
    assert lines == [f"et.json: line {line}, column {column}: {what}"]
    assert code == 1


def test_bytes_that_are_no_text_and_damaged_compression_are_told(check):
    text = json.dumps(good_document()).encode()
    at = text.index(b"aten::cat")
    assert check(text.replace(b"aten::cat", b"aten::\xff"))[1] == [f"et.json: byte {at + 6}: not UTF-8"]
    packed = gzip.compress(text)
    assert check(packed[:-20], name="et.json.gz")[1][0].endswith(": the compressed file is cut off")
    assert "the compressed file is damaged" in check(packed[:300] + bytes(40) + packed[340:], name="et.json.gz")[1][0]


def test_a_file_that_is_missing_or_a_timeline_is_told_and_the_others_are_checked(check, capsys, tmp_path):
    check(good_document())
    (tmp_path / "t.json").write_text(json.dumps(timeline_of(good_document())))
    assert main(["check", "none.json", "t.json", "et.json"]) == 1
    out = capsys.readouterr().out
    assert "none.json: No such file or directory\n" in out
    assert "t.json: is a timeline, not an execution trace: name it after --timeline\n" in out
    assert "et.json: 12 nodes, 2 threads, 14 ids of tensors and storages; no defects\n" in out


# ---- the timeline of the same run ----------------------------------------


def test_a_timeline_of_the_same_run_agrees(check):
    assert check(good_document(), timeline=timeline_of(good_document()))[:2] == (0, [])


def test_spans_that_begin_and_end_in_events_of_their_own_count_too(check):
    timeline = timeline_of(good_document())
    outer = event(timeline, 1)
    end = outer["ts"] + outer.pop("dur")
    outer.update(ph="b", id=5)
    timeline["traceEvents"].append(
        {"ph": "e", "cat": outer["cat"], "name": "", "pid": 1, "tid": 100, "ts": end, "id": 5}
    )
    assert check(good_document(), timeline=timeline)[:2] == (0, [])
    timeline["traceEvents"][-1]["ts"] = 60
    assert [line.split(": ")[1] for line in check(good_document(), timeline=timeline)[1]] == ["node 15", "node 16"]


def event(timeline, rf_id):
    return next(e for e in timeline["traceEvents"] if e["args"].get("Record function id") == rf_id)


TIMELINE_DAMAGES = {
    "an event less": (
        lambda timeline: timeline["traceEvents"].remove(event(timeline, 6)),
        "et.json: node 15: rf_id 6 (aten::cat) is not on the timeline",
    ),
    "an event more": (
        lambda timeline: timeline["traceEvents"].append({**event(timeline, 6), "args": {"Record function id": 66}}),
        "t.json: aten::cat (Record function id 66) is not a node",
    ),
    "an id that is 0": (
        lambda timeline: timeline["traceEvents"].append({**event(timeline, 6), "args": {"Record function id": 0}}),
        "t.json: Record function id is 0 for 1 events, such as aten::cat",
    ),
    "another name": (
        lambda timeline: event(timeline, 6).update(name="aten::stack"),
        "et.json: node 15: is aten::cat, but on the timeline rf_id 6 is aten::stack",
    ),
    "an event outside of its parent": (
        lambda timeline: event(timeline, 3).update(ts=46),
        "et.json: node 12: is not in its parent, node 11 (aten::linear), on the timeline",
    ),
    "an event inside of another": (
        lambda timeline: event(timeline, 5).update(ts=75),
        "et.json: node 14: is in aten::index (rf_id 7) on the timeline, but its parent is ## forward ##",
    ),
    "another thread": (
        lambda timeline: event(timeline, 5).update(tid=300),
        "et.json: node 14: is on thread 1, which is tid 100 on the timeline, but its event is on 300",
    ),
}


@pytest.mark.parametrize("name", TIMELINE_DAMAGES)
def test_a_timeline_that_differs_is_told(check, name):
    damage, expected = TIMELINE_DAMAGES[name]
    timeline = timeline_of(good_document())
    damage(timeline)
    code, lines, _ = check(good_document(), timeline=timeline)
    assert code == 1
    assert lines[0] == expected
    assert len(lines) == (2 if name == "another thread" else 1)  # the node is not in its parent either


def test_work_that_runs_for_a_thread_on_another_is_no_defect(check):
    document = good_document()
    document["nodes"].insert(0, node(60, "gloo:all_reduce", 10, rf_id=60, scope=7))
    timeline = timeline_of(document)
    timeline["traceEvents"].append(
        {**event(timeline, 8), "name": "gloo:all_reduce", "tid": 300, "args": {"Record function id": 60}}
    )
    assert check(document, timeline=timeline)[:2] == (0, [])


# ---- how it is asked -----------------------------------------------------


def test_lines_are_limited_and_json_has_them_too(check, capsys):
    document = good_document()
    for number in (11, 12, 13):
        attribute(find(document, number), "rf_id")["value"] = 0
    code, lines, last = check(document, "--max", "2")
    assert code == 1
    assert lines[1:] == ["et.json: node 13: rf_id is 0", "et.json: … 1 more; --max 0 prints all"]
    assert last.endswith("; 3 defects")
    assert len(check(document, "--max", "0")[1]) == 3
    assert main(["check", "et.json", "--format", "json", "--max", "1"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["files"]
    assert found["defects"] == [{"file": "et.json", "node": 12, "what": "rf_id is 0"}]
    assert (found["count"], found["nodes"], found["threads"]) == (3, 12, 2)


def test_wrong_usage_is_one_line(capsys):
    for words in (["check", "a", "--max", "-1"], ["check", "a", "b", "--timeline", "t"], ["check"], ["chek", "a"]):
        with pytest.raises(Failure) as failure:
            main(words)
        assert failure.value.code == 2 and "\n" not in str(failure.value)
    assert main([]) == 2
    assert "vestige et check FILE" in capsys.readouterr().err


def test_a_tensor_of_more_than_memory_can_hold_is_told(check):
    document = good_document()
    find(document, 13)["outputs"] = {
        name: [part]
        for name, part in zip(("values", "shapes", "types", "strides"), tensor(34, 35, (2, 16), strides=[1 << 50, 1]))
    }
    assert check(document)[1] == [f"et.json: node 13: output 0: reaches byte {((1 << 50) + 16) * 4} of its storage"]
