"""scripts/lint/check_words.py: which comments it reports as hard to read, and which rulers as broken."""

import sys
from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parent.parent.parent / "scripts" / "lint"
sys.path.insert(0, str(LINT))

import check_words

pytestmark = pytest.mark.any_python


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("What a call costs.", ["What"]),
        ("Of a span: its end.", ["Of"]),
        ("The same, without a lock.", ["The same"]),
        ("Reads it at once, beside the others.", ["at once", "beside"]),
        ("Returns NULL if there is none. What follows is kept.", []),
        ("The tale is told (words: kept).", []),
    ],
)
def test_words_that_stop_readers_are_found_unless_they_are_kept(comment, words):
    assert list(check_words.look(comment)) == words


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        ("/* ---- tables ----- */\n", False),
        ("/* ---- tables\n * ----- */\n", True),
        ("/* ---- tables -----\n */\n", True),
    ],
)
def test_a_ruler_over_two_lines_is_found(text, is_broken):
    assert bool(check_words.BROKEN_RULER.search(text)) == is_broken
