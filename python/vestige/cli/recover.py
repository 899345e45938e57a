"""`vestige recover`: writes a finished copy of a trace whose process died. Other commands read such traces directly."""

from __future__ import annotations

import os

from vestige._core import TraceError, recover
from vestige.base.failure import Failure, explain
from vestige.reading.inputs import SUFFIX, Inputs, Source, find_traces

from .console import Parser, add_files, check_absent, exists

EXAMPLES = """\
  vestige recover t.vst -o whole.vst
  vestige recover t.vst -o t.vst --force
  vestige recover traces/ -o whole/
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "recover",
        "Write finished copies of traces whose process died, with all their readable\n"
        "records. Other commands read such traces directly. Copies of several FILEs, or\n"
        "of a folder, go into the folder OUT under their names; the child processes of\n"
        "FILE become OUT.<pid>.",
        "FILE… -o OUT [--no-children] [--force]",
        EXAMPLES,
    )
    add_files(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the trace (.vst) or folder to write")
    parser.add_argument("--force", action="store_true", help="overwrite OUT, which may be FILE itself")
    options = parser.parse_args(argv)

    many = len(options.files) > 1 or os.path.isdir(options.files[0]) or os.path.isdir(options.output)
    if not many:
        check_absent(options.output, force=options.force)
    inputs = find_traces(options.files, children=not options.no_children)
    targets = _in_folder(inputs, options.output) if many else _next_to(inputs, options.files[0], options.output)
    for target in targets.values():
        check_absent(target, force=options.force)
    if many:
        _make_folder(options.output)
    for source in inputs.sources:
        _recover(inputs, source, targets[source.path], options.force)
    return int(inputs.failed)


def _in_folder(inputs: Inputs, folder: str) -> dict[str, str]:
    """Returns {path: path of its copy}."""
    targets: dict[str, str] = {}
    for source in inputs.sources:
        target = os.path.join(folder, os.path.basename(source.path))
        if target in targets.values():
            raise Failure(f"two traces are called {os.path.basename(target)}: recover them one by one", code=2)
        targets[source.path] = target
    return targets


def _next_to(inputs: Inputs, path: str, output: str) -> dict[str, str]:
    """Returns {path: path of its copy} for a first process and its children. Children are found by their names, so
    their names change with the first process's name.
    """
    stem, new = path.removesuffix(SUFFIX), output.removesuffix(SUFFIX)
    return {
        source.path: output if source.path == path else new + source.path.removeprefix(stem)
        for source in inputs.sources
    }


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise Failure(explain(folder, error)) from None


def _recover(inputs: Inputs, source: Source, target: str, force: bool) -> None:
    try:
        recover(source.path, target, overwrite=force)
    except FileExistsError:
        raise exists(target) from None
    except OSError as error:
        raise Failure(explain(target, error)) from None
    except TraceError as error:
        if len(inputs.sources) == 1:
            raise Failure(explain(source.path, error)) from None
        inputs.fail(source, error)
