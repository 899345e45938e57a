"""The documentation agrees with the code: tables, variables, questions, names, files, figures."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples import BLOCK, ROOT, pages

import vestige
from vestige import _core

sys.path.insert(0, str(ROOT / "bench"))
import published

pytestmark = pytest.mark.any_python

DOCS = ROOT / "docs"
CHAPTERS = sorted(page for top in ("src", "python", "adapters") for page in ROOT.joinpath(top).rglob("README.md"))
PROSE = [
    *pages(),
    *CHAPTERS,
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "proofs/README.md")),
]
TOP = "src include python adapters scripts docs tests fuzz bench examples proofs".split()


def read(*parts):
    return ROOT.joinpath(*parts).read_text()


def output_of(*words):
    command = [sys.executable, "-m", "vestige", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# ---- the README ---------------------------------------------------------------


def test_the_readme_is_short_and_names_the_two_commands_of_developers():
    text = read("README.md")
    assert len(text.splitlines()) <= 150
    assert "`make demo`" in text
    assert "`make test`" in text


def test_the_figures_are_those_that_were_measured():
    figures = json.loads(read("bench", "engines.json"))
    assert published.costs(figures) in read("README.md")
    assert published.summary(figures) in read("docs", "how", "performance.md")
    assert len(published.costs(figures).splitlines()) - 2 <= 6


# ---- reference ----------------------------------------------------------------


def tables_of(text):
    """Returns {table: [(column, type, whether it may be null)]} from docs/reference/tables.md."""
    found = {}
    for title, body in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| `(\w+)` \| (\w+)(\??) \|", body, re.MULTILINE)
        if rows:
            found[title] = [(name, kind, bool(null)) for name, kind, null in rows]
    return found


def test_the_tables_have_the_columns_that_are_documented():
    there = {name: [tuple(column) for column in _core.Table(name, []).columns] for name in _core.table_names}
    assert tables_of(read("docs", "reference", "tables.md")) == there


def variables_of(folders):
    """Returns the environment variables that the sources name in quotes."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".c", ".cpp", ".h"):
                words = re.findall(r'"((?:VESTIGE|ENABLE_PYTORCH_EXECUTION_TRACE)[A-Z_]*)"', path.read_text())
                found.update(word for word in words if not word.endswith("_"))
    return found


def test_every_environment_variable_is_documented_and_no_other():
    asked = variables_of(["python", "src", "adapters"])
    text = read("docs", "reference", "environment.md")
    named = set(re.findall(r"`((?:VESTIGE|ENABLE_PYTORCH)_[A-Z_]+)`", text))
    assert asked <= named
    # Other names are composed of a prefix and a suffix.
    prefixes = ("VESTIGE_EXECUTION_TRACE_", "ENABLE_PYTORCH_EXECUTION_TRACE_")
    suffixes = "\n".join(path.read_text() for path in (ROOT / "python" / "vestige").rglob("execution_trace*.py"))
    for name in named - asked:
        assert name.startswith(prefixes), name
        assert name.split("EXECUTION_TRACE", 1)[1] in suffixes, name


def test_every_ready_question_is_in_the_guide():
    text = read("docs", "guides", "query.md")
    questions = re.findall(r"^([a-z-]+) ", output_of("query", "--list"), re.MULTILINE)
    assert len(questions) > 10
    assert [name for name in questions if f"`{name}`" not in text] == []


def test_every_public_name_is_in_the_reference():
    text = read("docs", "reference", "python.md")
    names = {*vestige.__all__, "open"}
    assert [name for name in sorted(names) if f"vestige.{name} " not in text and f"`vestige.{name}`" not in text] == []


def test_every_format_of_exports_is_in_the_guide():
    text = read("docs", "guides", "export.md")
    formats = re.findall(r"^  ([a-z-]+) +(?:\.|\(by --to\))", output_of("export", "--help"), re.MULTILINE)
    assert len(formats) > 10
    assert [name for name in formats if f"| `{name}`" not in text] == []


# ---- files --------------------------------------------------------------------


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(page):
    text = BLOCK.sub("", page.read_text())
    for name in re.findall(rf"`((?:{'|'.join(TOP)})/[^\s`]*)`", text):
        path = re.sub("<.*?>|…", "*", name.partition("#")[0].rstrip("/"))
        assert list(ROOT.glob(path)), f"{name} is named, and is not there"
    for name in re.findall(r"`?<(vestige/\w+\.h)>`?", text):
        assert (ROOT / "include" / name).exists(), f"<{name}> is named, and is not there"


@pytest.mark.parametrize(
    "page", ["ARCHITECTURE.md", "CONTRIBUTING.md", *(str(page.relative_to(ROOT)) for page in CHAPTERS)]
)
def test_source_files_that_are_named_without_a_folder_exist(page):
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a clone: the files of the project are not known")
    names = [Path(name).name for name in tracked.stdout.splitlines()]
    for name in re.findall(r"`([\w*]+\.(?:c|h|py|cpp|js|sh))`", read(page)):
        pattern = re.compile(name.replace(".", r"\.").replace("*", ".*"))
        assert any(pattern.fullmatch(there) for there in names), f"{name} is named, and is not there"


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_files_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} leads nowhere"
        if anchor and there.suffix == ".md" and "<!-- made:" not in there.read_text():
            assert anchor in anchors(there.read_text()), f"{target}: there is no such heading"


def anchors(text):
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
