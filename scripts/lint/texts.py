"""Finds the texts in sources that people read: comments, and the strings of errors and helps."""

import ast
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = ["src", "include", "python", "adapters"]
OTHERS = ["tests", "fuzz", "bench", "proofs", "scripts", "examples", "docs"]
C_LIKE = {".c", ".h", ".cpp", ".js", ".css"}
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|(/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)', re.DOTALL)
C_ERROR = re.compile(
    r'\b(?:PyErr_(?:SetString|Format)|vst_error_set|fprintf|VST_FAIL\w*)\s*\([^;"]*("(?:[^"\\]|\\.|"\s*")*")'
)
PYTHON_ERROR = re.compile(r"Error$|^(?:fail|error|refuse|warn|Refused|SystemExit|note)\w*$")


def sources(folders: list[str]) -> list[Path]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", *folders], capture_output=True, text=True, check=True)
    names = [Path(name) for name in listed.stdout.split("\0") if name]
    return [ROOT / name for name in names if name.suffix in C_LIKE | {".py"} and (ROOT / name).exists()]


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each comment and docstring; comments on consecutive lines are one comment."""
    yield from (_python_comments(path) if path.suffix == ".py" else _c_comments(path.read_text()))


def _c_comments(text: str) -> Iterator[tuple[int, str]]:
    for match in TOKEN.finditer(text):
        if match[1]:
            line = text.count("\n", 0, match.start()) + 1
            for comment in _split_behind_code(text, match):
                words = re.sub(r"^\s*(?://|\*(?!/))", "", comment, flags=re.MULTILINE)
                yield line, " ".join(words.split())
                line += 1


def _split_behind_code(text: str, match: re.Match[str]) -> list[str]:
    """A `//` comment behind code ends with its line; a comment on the next line is another comment."""
    comment = match[1].removeprefix("/*").removesuffix("*/")
    is_behind_code = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    return comment.split("\n", 1) if comment.startswith("//") and is_behind_code else [comment]


def _python_comments(path: Path) -> Iterator[tuple[int, str]]:
    first, last, words = 0, -1, ""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type != tokenize.COMMENT:
                continue
            line, text = token.start[0], token.string.lstrip("#! ")
            is_alone = not token.line[: token.start[1]].strip()
            if is_alone and line == last + 1:
                last, words = line, f"{words} {text}"
                continue
            if words:
                yield first, words
            first, last, words = line, line if is_alone else -1, text
    if words:
        yield first, words
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            documented = ast.get_docstring(node)
            if documented:
                yield node.body[0].lineno, " ".join(documented.split())


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of errors and helps, recognised by the name of the function that takes the text."""
    text = path.read_text()
    if path.suffix != ".py":
        for match in C_ERROR.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = node.args[:1] if PYTHON_ERROR.search(name) else []
        given += [word.value for word in node.keywords if word.arg in ("help", "description", "epilog")]
        for value in given:
            words = _string(value)
            if " " in words:
                yield node.lineno, words


def _string(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_string(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _string(node.left) + _string(node.right)
    return ""
