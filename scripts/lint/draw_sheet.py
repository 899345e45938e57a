#!/usr/bin/env python3
"""Draws a sheet from which a stranger judges the code: 24 functions, 160 comments, 70 errors and help texts.

    draw_sheet.py SEED [FOLDER …] > sheet.md

It draws from the given folders, or from the product.

The reader marks each function with which folder it belongs to, what the reader may touch there, and who calls it, and
each text with whether it was clear on first reading. proofs/results/reading.md is a filled sheet.
"""

import ast
import random
import sys

from c_source import functions
from texts import PRODUCT, ROOT, comments, messages, sources

FUNCTIONS, COMMENTS, MESSAGES = 24, 160, 70


def defined(path):
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, f"{node.name}()"
    elif path.suffix in {".c", ".h", ".cpp"}:
        for found in functions(path):
            if found.is_definition:
                yield found.line, f"{found.name}()"


def is_sentence(text):
    """Returns whether a comment is text: rulers and the names of modules are not."""
    return len(text.split()) > 2 and not text.startswith("----")


def drawn(title, of, count, paths, wanted=lambda _: True):
    everything = [(path, line, text) for path in paths for line, text in of(path) if wanted(text)]
    print(f"\n## {title}: {count} of {len(everything)}\n")
    for number, (path, line, text) in enumerate(random.sample(everything, count), 1):
        print(f"{number}. `{path.relative_to(ROOT)}:{line}` {text}")


def main():
    seed = sys.argv[1]
    random.seed(seed)
    paths = sources(sys.argv[2:] or PRODUCT)
    print(f"# A stranger's sheet, drawn with the seed {seed}")
    drawn("Functions", defined, FUNCTIONS, paths)
    drawn("Comments", comments, COMMENTS, paths, is_sentence)
    drawn("Errors and help texts", messages, MESSAGES, paths)


if __name__ == "__main__":
    sys.exit(main())
