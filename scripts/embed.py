#!/usr/bin/env python3
"""Writes a file as the text of a C array: embed.py FILE OUT NAME."""

import sys
from pathlib import Path

data = Path(sys.argv[1]).read_bytes()
words = [str(byte) if byte < 128 else f"'\\x{byte:02x}'" for byte in data]
lines = [", ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
Path(sys.argv[2]).write_text(f"static const char {sys.argv[3]}[] = {{\n" + ",\n".join(lines) + ",\n0};\n")
