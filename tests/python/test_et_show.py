"""`vestige et show`: the tree on the terminal, and parts of the tree for Graphviz."""

import json
import re

import pytest

from handmade_graph import find, good_document, node, timeline_of
from vestige.cli import Failure
from vestige.cli.et.command import main

pytestmark = pytest.mark.any_python

TREE = """\
 2  thread 1
10    ## forward ##(True, 2.5, inf, None, cpu, 'a"b')
11      aten::linear(float[2,8], float[16,8]) → float[2,16]
12        aten::t(float[16,8]) → float[8,16]
13        aten::addmm(float[2,8], float[16,8], 1) → float[2,16]
14      aten::select(float[2,16], 0, 1) → float[16]
15      aten::cat(float[16], float[2], 0) → float[18]
16      aten::index(float[2,8], long[3]) → float[18]
 3  thread 2
20    evaluate: AddmmBackward0()
21      AddmmBackward0(float[2,16])
"""


@pytest.fixture
def show(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*options, document=None):
        document = document or good_document()
        (tmp_path / "et.json").write_text(json.dumps(document))
        (tmp_path / "t.json").write_text(json.dumps(timeline_of(document)))
        assert main(["show", "et.json", *options]) == 0
        return capsys.readouterr().out

    return run


def test_the_tree_is_printed_with_ids_and_shapes(show):
    assert show() == TREE


def test_a_tree_is_cut_by_depth_thread_name_and_rows(show):
    shallow = show("--depth", "2", "--thread", "1").splitlines()
    assert shallow[2] == "11      aten::linear(float[2,8], float[16,8]) → float[2,16]  + 2 below"
    assert len(shallow) == 6
    assert show("--name", "aten::l*").splitlines() == [
        "11    aten::linear(float[2,8], float[16,8]) → float[2,16]",
        "12      aten::t(float[16,8]) → float[8,16]",
        "13      aten::addmm(float[2,8], float[16,8], 1) → float[2,16]",
    ]
    assert show("--max", "2").splitlines()[2:] == ["… 9 more; --max 0 prints all, --depth, --name and --thread choose"]
    assert show("--max", "0") == TREE


def test_times_come_from_the_timeline(show):
    assert "12    4.00 us        aten::t(float[16,8]) → float[8,16]" in show("--timeline", "t.json").splitlines()


def test_a_name_with_line_breaks_stays_on_its_line(show):
    document = good_document()
    find(document, 14)["name"] = "a\nb\x1b"
    assert "14      a b\ufffd(float[2,16], 0, 1) → float[16]" in show(document=document).splitlines()


def test_nodes_that_hang_nowhere_are_told(show):
    document = good_document()
    find(document, 11)["ctrl_deps"] = 13
    assert "3 nodes cannot be reached from a thread: see vestige et check et.json" in show(document=document)


# ---- for Graphviz --------------------------------------------------------


def drawn(path):
    """Returns the names of boxes, and the arrows as pairs of names with their labels."""
    text = path.read_text()
    boxes = dict(re.findall(r'^  (b\d+) \[label="(.*?)\\n#', text, re.MULTILINE))
    arrows = re.findall(r'^  (b\d+) -> (b\d+) \[label="(.*)"\];$', text, re.MULTILINE)
    return list(boxes.values()), {(boxes[one], boxes[other], what) for one, other, what in arrows}


def test_operators_and_the_tensors_between_them_are_written(show, tmp_path):
    out = show("-o", "et.dot")
    assert out == "folded: boxes marked +N stand for 2 more operators that these called; --depth N unfolds\n"
    boxes, arrows = drawn(tmp_path / "et.dot")
    assert sorted(boxes) == ["AddmmBackward0", "aten::cat", "aten::index", "aten::linear", "aten::select"]
    assert arrows == {
        ("aten::linear", "aten::select", "float[2,16]"),
        ("aten::linear", "AddmmBackward0", "float[2,16]"),
        ("aten::select", "aten::cat", "float[16]"),
    }


def test_a_part_is_unfolded_and_folded_by_depth(show, tmp_path):
    show("-o", "deep.dot", "--depth", "3")
    assert drawn(tmp_path / "deep.dot")[0][:2] == ["aten::t", "aten::addmm"]
    assert "+6" in (show("-o", "flat.dot", "--depth", "1"), (tmp_path / "flat.dot").read_text())[1]
    assert drawn(tmp_path / "flat.dot")[0] == ["## forward ##", "evaluate: AddmmBackward0"]
    out = show("-o", "few.dot", "--max", "1")
    assert "the first 1 of 2 operators; --max draws more, --name and --thread choose" in out


def test_a_part_is_chosen_by_name(show, tmp_path):
    show("-o", "part.dot", "--name", "aten::linear", "--depth", "2")
    assert drawn(tmp_path / "part.dot")[0] == ["aten::t", "aten::addmm"]


def test_boxes_have_ids_shapes_and_times_and_text_is_quoted(show, tmp_path):
    document = good_document()
    find(document, 14)["name"] = 'a"b\\c\nd'
    show("-o", "et.dot", "--timeline", "t.json", document=document)
    text = (tmp_path / "et.dot").read_text()
    assert text.startswith('digraph "et.json: 5 operators drawn of 9" {')
    assert r'b0 [label="aten::linear\n#11 +2\nfloat[2,16]\n40.0 us"];' in text
    assert r'[label="a\"b\\c\nd\n#14\n' in text
    assert 'b0 -> b1 [label="float[2,16]"];' in text
    assert text.count("->") == 3


def test_a_large_graph_is_folded_until_it_has_few_boxes(show, tmp_path):
    document = good_document()
    for k in range(50):
        document["nodes"].append(node(100 + 20 * k, f"step {k}", 2, rf_id=100 + 20 * k, scope=7))
        for m in range(1, 11):
            document["nodes"].append(node(100 + 20 * k + m, "aten::relu", 100 + 20 * k, rf_id=100 + 20 * k + m))
    out = show("-o", "et.dot", document=document)
    assert "--max" not in out and "507 more operators" in out
    assert len(drawn(tmp_path / "et.dot")[0]) == 52


# ---- how it is asked -----------------------------------------------------


def test_wrong_usage_and_files_that_are_none_are_one_line(show, tmp_path):
    show()
    for code, words in (
        (2, ["et.json", "--depth", "0"]),
        (2, ["et.json", "-o", "et.svg"]),
        (2, ["et.json", "-o", "t.json"]),
        (1, ["et.json", "--thread", "7"]),
        (1, ["et.json", "--name", "none"]),
        (1, ["t.json"]),
        (1, ["none.json"]),
        (1, ["et.json", "-o", "no/folder.dot"]),
    ):
        with pytest.raises(Failure) as failure:
            main(["show", *words])
        assert failure.value.code == code and "\n" not in str(failure.value), words
    (tmp_path / "et.dot").write_text("precious")
    with pytest.raises(Failure, match="already exists"):
        main(["show", "et.json", "-o", "et.dot"])
