"""Finds the examples of a page of documentation, and runs them in order.

The blocks of a page share a folder that contains only the repository's `examples/`. The language says how a block is
run:

    console   commands behind `$ `, for bash. Lines shown below a command must be in its output, in this order; `…`
              stands for anything, and numbers with their units are not compared
    python    a program; if its first line is a comment with a file's name (`# app.py`), the file is only written
    ipython   a cell; one shell runs all cells of a page, at the place of the last cell
    sql       a query of the trace t.vst, run by `vestige query`
    text, c, ini, toml, json: not run

A comment above a block may change this:

    <!-- not run: why -->      the block is not run: the test machine cannot run it, or it never ends
    <!-- needs: torch -->      run only if this module can be imported
    <!-- exit code: 3 -->      the exit code of the block's last command
    <!-- setup python … -->    hidden code, put before each later program of the page
    <!-- setup console … -->   hidden commands, run here; each must succeed
"""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ("console", "python", "ipython", "sql")
SHOWN = ("text", "c", "ini", "toml", "json")
BLOCK = re.compile(
    r"^<!-- setup (?P<setup>python|console)\n(?P<hidden>.*?)^-->$"
    r"|^<!-- (?P<note>not run|needs|exit code): (?P<said>[^\n]*?) -->$"
    r"|^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell).raise_error()
"""
# Lets the path of Python contain spaces: a shell executes the second line, Python reads it as a string.
COMMAND = """\
#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
from {what}

raise SystemExit(main())
"""
SECONDS = 300  # no block takes that long unless it waits for ever


class Failed(Exception):
    """The result of an example differs from the page."""


class Block:
    def __init__(self, found: re.Match, notes: dict[str, str], line: int) -> None:
        indent = found["indent"] or ""
        self.language = found["language"] or found["setup"]
        self.is_hidden = bool(found["setup"])
        text = found["hidden"] if self.is_hidden else found["text"]
        self.text = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        self.line = line
        self.not_run = notes.get("not run")
        self.needs = notes.get("needs", "").split()
        self.code = int(notes.get("exit code", 0))


def pages() -> list[Path]:
    """Returns all pages that people read as documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    found, notes = [], {}
    text = page.read_text()
    for match in BLOCK.finditer(text):
        if match["note"]:
            notes[match["note"]] = match["said"]
        else:
            found.append(Block(match, notes, text.count("\n", 0, match.start()) + 1))
            notes = {}
    return found


def is_run(block: Block) -> bool:
    return block.language in RUN and not block.not_run and not FILE.match(block.text)


class Runner:
    """Runs the blocks of a page in a folder."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.commands = folder.parent / f"{folder.name}-commands"
        self.setup = ""
        self.cells: list[str] = []
        self.skipped: set[str] = set()
        (folder / "examples").symlink_to(ROOT / "examples")
        self._make_commands()

    def run(self) -> None:
        found = blocks(self.page)
        last_cell = next((block for block in reversed(found) if block.language == "ipython"), None)
        for block in found:
            missing = [name for name in block.needs if find_spec(name) is None]
            self.skipped.update(missing)
            if block.not_run or missing:
                continue
            try:
                self._run(block, block is last_cell)
            except Failed as failed:
                raise Failed(f"{self.page.relative_to(ROOT)}:{block.line}: {failed}") from None

    def _run(self, block: Block, is_last_cell: bool) -> None:
        name = FILE.match(block.text)
        if block.language in ("python", "ini", "toml") and name:
            (self.folder / name[1]).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name[1]).write_text(block.text)
        elif block.is_hidden and block.language == "python":
            self.setup += block.text
        elif block.is_hidden:
            self._shell(f"set -eu\n{block.text}")
        elif block.language == "python":
            self._python(self.setup + block.text)
        elif block.language == "ipython":
            self.cells.append(block.text)
            if is_last_cell:
                self._python(CELLS.format(cells=[self.setup, *self.cells]))
        elif block.language == "sql":
            (self.folder / "question.sql").write_text(block.text)
            self._shell("vestige query @question.sql t.vst")
        elif block.language == "console":
            self._console(block)

    def _console(self, block: Block) -> None:
        commands = split(block.text)
        if not commands:
            raise Failed("a console block without a command; commands begin with `$ `")
        for number, (command, shown) in enumerate(commands, 1):
            output = self._shell(command, block.code if number == len(commands) else 0)
            compare(command, shown, output)

    def _python(self, text: str) -> str:
        path = self.folder / "example.py"
        path.write_text(text)
        output = self._shell("python example.py")
        path.unlink()
        return output

    def _shell(self, command: str, code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
            text=True,
        )
        if done.returncode != code:
            raise Failed(f"{command}\nended with {done.returncode}, not {code}:\n{done.stdout[-3000:]}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not re.match("VESTIGE|PYTEST|COLUMNS|MAKE", name)}
        return {**kept, "PATH": f"{self.commands}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def _make_commands(self) -> None:
        """Puts this Python and its commands into a folder, under their usual names."""
        self.commands.mkdir()
        python = shlex.quote(sys.executable)
        (self.commands / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        for name, what in {
            "vestige": "vestige.cli import main",
            "pytest": "pytest import console_main as main",
        }.items():
            (self.commands / name).write_text(COMMAND.format(python=python, what=what))
        for command in self.commands.iterdir():
            command.chmod(0o755)


def split(text: str) -> list[tuple[str, list[str]]]:
    """Returns the commands of a console block, each with the lines shown below it."""
    commands: list[tuple[str, list[str]]] = []
    goes_on = False
    for line in text.splitlines():
        if goes_on:
            commands[-1] = (commands[-1][0] + "\n" + line.removeprefix("> "), [])
        elif line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return commands


def compare(command: str, shown: list[str], output: str) -> None:
    """Returns whether all shown lines are in the output, in order."""
    lines = iter(map(shape, output.splitlines()))
    for line in shown:
        pattern = ".*".join(map(re.escape, shape(line).split("…")))
        if pattern in ("", ".*"):
            continue
        if not any(re.fullmatch(pattern, there) for there in lines):
            raise Failed(f"{command}\ndid not print, or not there: {line}\nbut:\n{output[-3000:]}")


def shape(line: str) -> str:
    """Removes everything that differs between runs: numbers with their units, and drawn lines."""
    line = re.sub(
        r"(?<![\w.])[-+~]?\d+(?:[.,]\d+)*( ?(ns|us|µs|ms|s|min|h|B|KiB|MiB|GiB|KB|MB|GB|bytes|%))?(?!\w)", "0", line
    )
    line = re.sub(r"[│├└─█▏▎▍▌▋▊▉]", " ", line)
    return " ".join(line.split())
