#!/usr/bin/env python3
"""Lists comments that begin with half a sentence, or use a word that newcomers do not understand; a reminder.

A comment that keeps such a word on purpose says "(words: kept)". The words that stay are in docs/glossary.md. Rulers
(`/* ---- … ---- */`) that are broken over two lines are errors.
"""

import re
import sys

from texts import OTHERS, PRODUCT, ROOT, comments, sources

BEGINS = re.compile(r"(?:What|Of|The same)\b")
HOUSE = re.compile(r"\b(?:told|tells?|telling|beside|at once|slowly|odd|settle[sd]?|takes? turns)\b", re.IGNORECASE)
KEPT = "(words: kept)"
BROKEN_RULER = re.compile(r"/\* -{4} [^*\n]*$", re.MULTILINE)


def look(text):
    """Yields the words of a comment that a reader may stumble over."""
    if KEPT not in text:
        yield from BEGINS.findall(text[:8]) if BEGINS.match(text) else ()
        yield from HOUSE.findall(text)


def broken_rulers():
    for path in sources([*PRODUCT, *OTHERS]):
        text = path.read_text() if path.suffix != ".py" else ""
        for match in BROKEN_RULER.finditer(text):
            yield f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: a ruler over two lines"


def main():
    found = 0
    for path in sources([*PRODUCT, *OTHERS]):
        for line, text in comments(path):
            for word in look(text):
                found += 1
                print(f"{path.relative_to(ROOT)}:{line}: '{word}' in \"{text[:70]}\"")
    broken = list(broken_rulers())
    print("\n".join(broken))
    print(f"REMINDER: {found} comments have words that stop readers: scripts/lint/check_words.py lists them")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
