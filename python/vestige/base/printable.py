"""Makes text that a stranger may have written fit for a terminal: the only place that knows which characters a
terminal obeys. Names, files, arguments and command lines in a trace are whatever its author put there. The command
sends everything that it prints through here (base/terminal.py), and so does other code that makes text for people.
Files are written unchanged.
"""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """Returns the text without anything that a terminal would obey: control characters of C0 and C1 (escape sequences
    begin with one), marks that change the direction of writing, and surrogates, which cannot be encoded. White space
    of any kind becomes a space. Every other removed character becomes U+FFFD, so that the reader sees it.
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def one_line(text: str) -> str:
    """Like printable(), with runs of white space as one space: for cells of tables."""
    return printable(" ".join(text.split()))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else REPLACEMENT
