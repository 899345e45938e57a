"""Text that a stranger may have written, made fit for a terminal. The one place that knows what a terminal obeys.

Names, files, arguments and command lines in a trace are whatever its author put there. The command line sends all that
it prints through here (cli/terminal.py), and so does whatever else makes text for people; files are
written as they are.
"""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: control characters of C0 and C1 (escape sequences begin
    with one), marks that change the direction of writing, and halves of characters, which cannot be encoded. White
    space of any kind is a space. What is left out is seen: each character becomes U+FFFD.
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def one_line(text: str) -> str:
    """The same, with runs of white space as one space: for cells of tables."""
    return printable(" ".join(text.split()))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else REPLACEMENT
