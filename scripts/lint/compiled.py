"""Passes on the files named on standard input that a build directory compiles: compiled.py BUILD.

Names end with a zero on both sides, as `find -print0` writes them.
"""

import json
import sys
from pathlib import Path

commands = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
known = {(Path(one["directory"]) / one["file"]).resolve() for one in commands}
names = sys.stdin.buffer.read().decode().split("\0")
sys.stdout.write("".join(f"{name}\0" for name in names if name and Path(name).resolve() in known))
