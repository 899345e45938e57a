#!/usr/bin/env python3
"""Reports comments that begin with half a sentence, or use a word that stops readers who were not there.

A comment that keeps such a word on purpose says "(words: kept)". The words that stay are in docs/glossary.md.
"""

import re
import sys

from texts import PRODUCT, ROOT, comments, sources

BEGINS = re.compile(r"(?:What|Of|The same)\b")
HOUSE = re.compile(r"\b(?:told|tells?|telling|beside|at once|slowly|odd|settle[sd]?|takes? turns)\b", re.IGNORECASE)
KEPT = "(words: kept)"


def look(text):
    """The words of a comment that a reader may stumble over."""
    if KEPT not in text:
        yield from BEGINS.findall(text[:8]) if BEGINS.match(text) else ()
        yield from HOUSE.findall(text)


def main():
    found = 0
    for path in sources([*PRODUCT, "scripts"]):
        for line, text in comments(path):
            for word in look(text):
                found += 1
                print(f"{path.relative_to(ROOT)}:{line}: '{word}' in \"{text[:70]}\"")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
