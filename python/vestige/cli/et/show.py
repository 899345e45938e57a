"""`vestige et show`: an execution trace as a tree on the terminal, or a part of it for Graphviz."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

from vestige.base.failure import Failure, explain
from vestige.base.new_files import writing
from vestige.base.printable import printable
from vestige.base.terminal import Progress
from vestige.cli.console import Parser, check_absent, check_least

from .node import THREAD
from .stream import Broken
from .timeline import Timeline
from .tree import Tree, shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from .tree import Operator

SUFFIX = ".dot"
ROWS = 1000
BOXES = 400
EXAMPLES = """\
  vestige et show et.json                        the tree of operators
  vestige et show et.json --depth 2 --thread 1
  vestige et show et.json --name 'aten::*mm'     these, and everything below
  vestige et show et.json --timeline t.json      with times of operators
  vestige et show et.json --name 'ProfilerStep*' -o et.dot    for dot -Tsvg
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "et show",
        "Print the tree of operators of an execution trace, ours or torch's, with their\n"
        "ids, inputs and outputs; or write a part of it for Graphviz: boxes are\n"
        "operators, arrows are tensors that one operator made and another used.",
        "FILE [--depth N] [--thread N] [--name PATTERN] [--max N]\n"
        "                       [--timeline T] [-o OUT] [--force]",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="an execution trace (.json, .json.gz)")
    parser.add_argument("--depth", metavar="N", type=int, help="the greatest depth below a thread, or below a --name")
    parser.add_argument("--thread", metavar="N", type=int, action="append", help="only this thread; may be repeated")
    parser.add_argument("--name", metavar="PATTERN", help="only operators of this name (* and ? match any letters)")
    parser.add_argument(
        "--max", metavar="N", type=int, help=f"rows to print, or boxes in OUT (default: {ROWS}; 0: all)"
    )
    parser.add_argument(
        "--timeline", metavar="T", action="append", help="Chrome JSON of the same run, for the times of operators"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help=f"write the tree for Graphviz ({SUFFIX})")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    options = parser.parse_args(argv)
    _check(options)
    tree = _read(options)
    tops = select(tree, options.thread, options.name)
    if options.output is None:
        _print(tree, tops, options)
    else:
        _draw(tree, tops, options)
    return 0


def _check(options: Namespace) -> None:
    check_least("--depth", options.depth, 1)
    check_least("--max", options.max, 0)
    if options.output is None:
        return
    if not options.output.endswith(SUFFIX):
        raise Failure(f"{options.output}: this is not a name for Graphviz; it must end in {SUFFIX}", code=2)
    check_absent(options.output, force=options.force)


def _read(options: Namespace) -> Tree:
    path = options.file
    with Progress(f"reading {path}") as progress:
        try:
            tree = Tree(path, progress)
            if not tree.is_one:
                raise Failure(f"{path}: not an execution trace: it has no nodes")
            if options.timeline is not None:
                timeline = Timeline()
                for path in options.timeline:
                    if not timeline.read(path, progress):
                        raise Failure(f"{path}: not a timeline: it has no traceEvents")
                tree.add_times(timeline)
        except (OSError, Broken) as error:
            raise Failure(explain(path, error)) from None
    return tree


def select(tree: Tree, threads: list[int] | None, pattern: str | None) -> list[Operator]:
    """Returns the operators to show, each with everything below it: threads, or the outermost operators of a name."""
    if threads:
        known = {top.tid for top in tree.threads}
        for number in threads:
            if number not in known:
                raise Failure(f"{tree.path}: there is no thread {number}; there are {_listed(sorted(known))}")
    tops = [top for top in (*tree.threads, *tree.stray) if not threads or top.tid in threads]
    if pattern is None:
        return tops
    found = []
    stack = tops[::-1]
    while stack:
        operator = stack.pop()
        if operator.name != THREAD and fnmatchcase(operator.name, pattern):
            found.append(operator)
        else:
            stack.extend(reversed(operator.children))
    if not found:
        raise Failure(f"{tree.path}: no operator is named {pattern!r}")
    return found


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


# ---- as text -------------------------------------------------------------


def _print(tree: Tree, tops: list[Operator], options: Namespace) -> None:
    rows = sys.maxsize if options.max == 0 else options.max or ROWS
    timed = any(operator.duration is not None for operator in tree.walk()) if options.timeline else False
    width = len(str(max((top.last for top in tops), default=1)))
    printed = hidden = 0
    for operator, level in _rows(tops):
        if options.depth is not None and level > options.depth:
            continue
        if printed == rows:
            hidden += 1
            continue
        printed += 1
        print(_row(operator, level, width, timed, options.depth))
    if hidden:
        print(f"… {hidden:,} more; --max 0 prints all, --depth, --name and --thread choose")
    if tree.unreachable:
        print(f"{tree.unreachable:,} nodes cannot be reached from a thread: see vestige et check {tree.path}")


def _rows(tops: list[Operator]) -> Iterator[tuple[Operator, int]]:
    """Yields operators with their depth: 0 for a thread, 1 for its operators or for the requested operators."""
    stack = [(top, 0 if top.name == THREAD else 1) for top in reversed(tops)]
    while stack:
        operator, level = stack.pop()
        yield operator, level
        stack.extend((child, level + 1) for child in reversed(operator.children))


def _row(operator: Operator, level: int, width: int, timed: bool, depth: int | None) -> str:
    time = f"{shown_time(operator.duration):>9}  " if timed else ""
    if operator.name == THREAD:
        return f"{operator.id:>{width}}  {time}thread {operator.tid}"
    name = "  " * level + printable(operator.name)
    given = ", ".join(text for _, text in operator.given)
    gave = ", ".join(text for _, text in operator.gave)
    line = f"{operator.id:>{width}}  {time}{name}({_short(given)})" + (f" → {_short(gave)}" if gave else "")
    if depth is not None and level == depth and operator.children:
        line += f"  + {len(operator.subtree()) - 1:,} below"
    return line


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 160 else text[:159] + "…"


# ---- for Graphviz --------------------------------------------------------


def _draw(tree: Tree, tops: list[Operator], options: Namespace) -> None:
    from .dot import Drawing, write_dot

    drawing = Drawing(tree, tops, options.depth, options.max or BOXES)
    with writing(options.output, encoding="utf-8", errors="backslashreplace") as file:
        write_dot(drawing, file)
    for note in drawing.notes:
        print(note)
