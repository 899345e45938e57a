"""`vestige merge`: several traces in one file, as one timeline."""

from __future__ import annotations

from vestige.reading.inputs import find_traces

from .console import Parser
from .export import add_options, check_output, write

EXAMPLES = """\
  vestige merge t.vst -o all.json.gz              t.vst and all it started
  vestige merge rank0.vst rank1.vst -o all.json.gz
  vestige merge hostA/ hostB/ --align barrier -o all.json.gz
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "merge",
        "Write several traces as one timeline, with a process for each and arrows from\n"
        "those that started others, in a format of `vestige export`. FILE stands for\n"
        "the processes it started too, a folder for all traces in it.",
        "FILE… -o OUT [options]",
        EXAMPLES,
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")
    add_options(parser)
    options = parser.parse_args(argv)
    check_output(options.output, force=options.force)
    inputs = find_traces(options.files, children=not options.no_children)
    write(inputs, options.output, options)
    return int(inputs.failed)
