"""`vestige et show`: the tree on the terminal, and drawings of it."""

import html
import json
import re
import xml.etree.ElementTree as xml

import pytest

from handmade_graph import find, good_document, node, timeline_of
from test_memory_page import BROWSER, open_page, with_script
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


# ---- drawings ------------------------------------------------------------


def drawn_as_svg(path):
    """Names of boxes, and arrows as pairs of names with what goes along them."""
    space = "{http://www.w3.org/2000/svg}"
    root = xml.fromstring(path.read_text())
    boxes = {
        group.get("id"): group.find(f"{space}text").text
        for group in root.iter(f"{space}g")
        if (group.get("class") or "").startswith("box")
    }
    arrows = set()
    for line in root.iter(f"{space}path"):
        kind, *ends = (line.get("class") or "").split()
        if kind == "edge":
            arrows.add((*(boxes["b" + end[1:]] for end in ends), line.find(f"{space}title").text))
    return list(boxes.values()), arrows


def test_operators_and_the_tensors_between_them_are_drawn(show, tmp_path):
    out = show("-o", "et.svg")
    assert out == "folded: boxes marked +N stand for 2 more operators that these called; --depth N unfolds\n"
    boxes, arrows = drawn_as_svg(tmp_path / "et.svg")
    assert sorted(boxes) == ["AddmmBackward0", "aten::cat", "aten::index", "aten::linear", "aten::select"]
    assert arrows == {
        ("aten::linear", "aten::select", "float[2,16]"),
        ("aten::linear", "AddmmBackward0", "float[2,16]"),
        ("aten::select", "aten::cat", "float[16]"),
    }


def test_a_drawing_is_unfolded_and_folded_by_depth(show, tmp_path):
    show("-o", "deep.svg", "--depth", "3")
    assert drawn_as_svg(tmp_path / "deep.svg")[0][:2] == ["aten::t", "aten::addmm"]
    assert "+6" in (show("-o", "flat.svg", "--depth", "1"), (tmp_path / "flat.svg").read_text())[1]
    assert drawn_as_svg(tmp_path / "flat.svg")[0] == ["## forward ##", "evaluate: AddmmBackward0"]
    out = show("-o", "few.svg", "--max", "1")
    assert "the first 1 of 2 operators; --max draws more, --name and --thread choose" in out


def test_a_drawing_for_graphviz_has_the_same_boxes_and_arrows(show, tmp_path):
    show("-o", "et.dot", "--timeline", "t.json")
    text = (tmp_path / "et.dot").read_text()
    assert text.startswith('digraph "et.json: 5 operators drawn of 9" {')
    assert r'b0 [label="aten::linear\n#11 +2\nfloat[2,16]\n40.0 us"];' in text
    assert 'b0 -> b1 [label="float[2,16]"];' in text
    assert text.count("->") == 3


def test_a_page_holds_all_operators_and_loads_nothing(show, tmp_path):
    document = good_document()
    find(document, 14)["name"] = "</script><b>&\"'"
    show("-o", "et.html", "--timeline", "t.json", document=document)
    text = (tmp_path / "et.html").read_text()
    assert text.count("</script>") == 2  # of the data, and of what shows it
    assert html.escape('</script><b>&"', quote=True) in text
    rows = json.loads(re.search(r'id="nodes">(.*?)</script>', text).group(1))
    assert [row[2] for row in rows][:4] == ["thread 1", "thread 2", "## forward ##", "aten::linear"]
    assert "</script><b>&\"'" in [row[2] for row in rows]
    assert not re.search(r"(src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)", text)


def test_a_large_graph_is_folded_until_it_can_be_drawn(show, tmp_path):
    document = good_document()
    for k in range(30):
        document["nodes"].append(node(100 + 20 * k, f"step {k}", 2, rf_id=100 + 20 * k, scope=7))
        for m in range(1, 11):
            document["nodes"].append(node(100 + 20 * k + m, "aten::relu", 100 + 20 * k, rf_id=100 + 20 * k + m))
    out = show("-o", "et.svg", document=document)
    assert "--max" not in out and "307 more operators" in out
    assert len(drawn_as_svg(tmp_path / "et.svg")[0]) == 32


ACTIONS = """<script>
const result = {};
try {
  const $ = name => document.querySelector(name), count = name => document.querySelectorAll(name).length;
  result.boxes = count("g.box"); result.rows = count("#tree summary, #tree .leaf");
  $("#b0").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  result.chosen = [$("#facts h2").textContent, $("#tree .chosen span").textContent, count("path.near")];
  const search = $("#search"), before = $("main svg").getAttribute("viewBox");
  search.value = "long"; search.dispatchEvent(new Event("input"));
  search.value = "addmmback"; search.dispatchEvent(new Event("input"));
  search.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
  result.found = [$("#facts h2").textContent, $("#facts dl").textContent, $("main svg").getAttribute("viewBox") !== before];
  $("main svg").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  result.left = [count(".chosen"), $("#facts").textContent];
  result.images = count("img");
} catch (error) { result.error = String(error.stack); }
const told = document.createElement("pre");
told.id = "result"; told.textContent = JSON.stringify(result);
document.body.replaceChildren(told);
</script>"""


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)")
def test_a_page_can_be_used_in_a_browser(show, tmp_path):
    document = good_document()
    find(document, 14)["name"] = "</script><img src=x onerror=alert(1)>"
    show("-o", "et.html", document=document)
    page = tmp_path / "used.html"
    page.write_text(with_script((tmp_path / "et.html").read_text(), ACTIONS))
    result = json.loads(
        html.unescape(re.search('<pre id="result">(.*?)</pre>', open_page(page, tmp_path), re.DOTALL)[1])
    )
    assert "error" not in result, result["error"]
    assert (result["boxes"], result["rows"], result["images"]) == (5, 4, 0)
    assert result["chosen"] == ["aten::linear", "aten::linear", 2]
    assert result["found"][0] == "AddmmBackward0" and "sequence7" in result["found"][1] and result["found"][2]
    assert result["left"] == [0, "Choose an operator."]


# ---- how it is asked -----------------------------------------------------


def test_wrong_usage_and_files_that_are_none_are_one_line(show, tmp_path):
    show()
    for code, words in (
        (2, ["et.json", "--depth", "0"]),
        (2, ["et.json", "-o", "et.png"]),
        (2, ["et.json", "-o", "t.json"]),
        (1, ["et.json", "--thread", "7"]),
        (1, ["et.json", "--name", "none"]),
        (1, ["t.json"]),
        (1, ["none.json"]),
        (1, ["et.json", "-o", "no/folder.svg"]),
    ):
        with pytest.raises(Failure) as failure:
            main(["show", *words])
        assert failure.value.code == code and "\n" not in str(failure.value), words
    (tmp_path / "et.svg").write_text("precious")
    with pytest.raises(Failure, match="already exists"):
        main(["show", "et.json", "-o", "et.svg"])
