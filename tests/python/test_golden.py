"""Golden traces are read with equal results for ever: see tests/golden/README.md."""

import difflib
from pathlib import Path

import pytest

import golden

pytestmark = pytest.mark.any_python

REWRITE = {
    "machine": "programs rely on this: old traces must read to the same result",
    "human": "if this was meant: python tests/golden/write.py",
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return golden.Workplace(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", golden.NAMES)
def test_an_old_trace_reads_to_the_same_result_for_programs(work, name):
    compare("machine", name, golden.machine(name), work)


@pytest.mark.sql
@pytest.mark.parametrize("name", golden.NAMES)
def test_questions_to_an_old_trace_have_the_same_answers(work, name):
    compare("machine", name, golden.questions(name), work)


@pytest.mark.parametrize("name", golden.NAMES)
def test_an_old_trace_is_told_to_people_as_before(work, name):
    compare("human", name, golden.human(name), work)


@pytest.mark.parametrize("name", [name for name in golden.NAMES if name not in ("family", "packed")])
def test_an_old_trace_packs_and_unpacks_to_the_same_bytes(work, name):
    packed, whole = work.path / "small.vst", work.path / "whole.vst"
    work.run("pack", f"{name}.vst", "-o", packed.name, "--force")
    assert packed.stat().st_size < (work.path / f"{name}.vst").stat().st_size
    work.run("pack", "--undo", packed.name, "-o", whole.name, "--force")
    assert whole.read_bytes() == (work.path / f"{name}.vst").read_bytes()
    exported = [work.write("export", file.name, "-o", "out.json") for file in (packed, whole)]
    assert exported[0] == exported[1]


def test_the_packed_trace_unpacks_to_the_bytes_it_was_made_of(work):
    work.run("pack", "--undo", "packed.vst", "-o", "whole.vst", "--force")
    assert (work.path / "whole.vst").read_bytes() == (work.path / "plain.vst").read_bytes()


def test_an_old_trace_with_native_frames_is_told_whatever_libraries_are_here(work):
    said = work.run("memory-report", f"{golden.NATIVE}.vst")
    assert "high-water mark" in said and "memory.py:22 grow" in said


@pytest.mark.parametrize("name", golden.NAMES)
def test_an_old_trace_becomes_a_page(work, name):
    page = work.path / "page.html"
    page.unlink(missing_ok=True)
    if name in golden.MEMORY:
        work.run("memory-report", golden.trace(name), "-o", page.name)
    else:
        work.run("view", golden.trace(name), "--html", page.name)
    assert "</html>" in page.read_text()


def test_every_result_that_is_kept_is_asked_for():
    """Otherwise the result would no longer be compared."""
    files = {
        path.relative_to(golden.FOLDER).with_name(path.name.removesuffix(".gz"))
        for kind in ("machine", "human")
        for path in (golden.FOLDER / kind).glob("*/*")
    }
    digests = {
        Path("machine", path.stem, result)
        for path in (golden.FOLDER / "machine").glob("*.json")
        for result in golden.digests_of(path.stem)
    }
    asked = {
        golden.path_of(kind, name, result).relative_to(golden.FOLDER)
        for kind in ("machine", "human")
        for name in golden.NAMES
        for result, _ in golden.results(kind, name)
    }
    assert files | digests <= asked  # an empty result has no file
    assert {path for path in asked if golden.is_digest(path.parts[0], path)} == digests
    assert not files & digests


def compare(kind, name, results, work):
    different = []
    for result, ask in results:
        now = ask(work)
        if not golden.is_same(kind, name, result, now):
            different.append(f"{name}/{result}:\n{describe(golden.path_of(kind, name, result), now)}")
    assert not different, "\n".join([*different, REWRITE[kind]])


def describe(path, now):
    """Returns the first lines that differ, shortened."""
    if golden.is_digest(path.parts[-3], path):
        return "its digest differs: the same command on a build of the commit before shows what changed"
    lines = [data.decode(errors="backslashreplace").splitlines() for data in (golden.load(path), now)]
    changed = difflib.unified_diff(*lines, "golden", "now", lineterm="", n=0)
    return "\n".join(line[:300] for line, _ in zip(changed, range(12)))
