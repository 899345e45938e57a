"""Runs every example of the documentation: examples.py describes the blocks."""

import re

import pytest
from examples import BLOCK, ROOT, RUN, SHOWN, Runner, blocks, is_run, pages

pytestmark = pytest.mark.any_python


@pytest.mark.parametrize(
    "page", [page for page in pages() if any(map(is_run, blocks(page)))], ids=lambda page: page.stem
)
def test_the_examples_of_a_page_do_what_it_says(page, tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    runner = Runner(page, folder)
    runner.run()
    if runner.skipped:
        pytest.skip(f"no {', '.join(sorted(runner.skipped))}: {page.relative_to(ROOT)} in part")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_no_block_of_code_escapes_the_tests(page):
    for block in blocks(page):
        assert block.language in (*RUN, *SHOWN, "{toctree}"), (
            f"line {block.line}: {block.language!r} is no language that we know"
        )
        assert block.not_run != "", f"line {block.line}: not run, and no word why"
    rest = BLOCK.sub("", page.read_text())
    assert not re.search(r"^ *```", rest, re.MULTILINE), "a fence that is not closed"
    assert not re.search(r"(?<!\S)\n\n {4}[^\s|*-]", rest), "code that is only indented"
