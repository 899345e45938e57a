#!/usr/bin/env python3
"""Writes the keywords of vestige.profile(), and their part of its docstring, from the table of options. Run it after a
change to python/vestige/recording/option_table.py; tests/python/test_options.py fails until then.

The keywords are in the source because editors and type checkers read them there.
"""

import sys
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "vestige"
# The begin of the table's part, and the text behind it:
SIGNATURE = "        output: ", "    ) -> None:\n        named = "
DOCSTRING = "    output        ", '    """\n\n    _is_torchs'
WIDTH, COLUMN = 120, 18

sys.path.insert(0, str(PACKAGE / "recording"))
from option_table import FLAG, KEYWORDS  # loaded without the package, which may not be built yet


def parameters():
    """Yields lines for all keywords except those that torch.profiler has, too."""
    for option in KEYWORDS:
        if "torch" not in option.traits:
            is_open = option.kind is FLAG and option.default is None
            kind = option.kind.type + " | None" * is_open
            yield f"        {option.name}: {kind} = {option.default!r},\n".replace("'", '"')


def described():
    """Yields the lines of the docstring."""
    for option in KEYWORDS:
        name = f"    {option.name}  ".ljust(COLUMN)
        text = option.python or option.help
        yield textwrap.fill(text, WIDTH, initial_indent=name, subsequent_indent=" " * COLUMN) + "\n"


def between(text, begin, end, lines):
    at = text.index(begin)
    return text[:at] + "".join(lines) + text[text.index(end, at) :]


def written(text):
    return between(between(text, *SIGNATURE, parameters()), *DOCSTRING, described())


if __name__ == "__main__":
    path = PACKAGE / "profiler.py"
    path.write_text(written(path.read_text()))
