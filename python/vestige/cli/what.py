"""What is recorded: the options that `vestige run` and `vestige attach` have in common, and the arguments of a profile
that they become. It runs inside the program's process, so it loads nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from .console import Parser


def add_recorded(parser: Parser) -> None:
    parser.add_argument("--no-c", action="store_true", help="leave out functions written in C")
    parser.add_argument("--no-gc", action="store_true", help="leave out garbage collections")
    parser.add_argument("--include", metavar="PAT", action="append", help="only functions of these files")
    parser.add_argument("--exclude", metavar="PAT", action="append", help="no functions of these files")
    parser.add_argument(
        "--record-args",
        metavar="PATTERN",
        action="append",
        help="record arguments and results of functions of this name ('load_*')",
    )
    add_bounds(parser)
    parser.add_argument("--min-duration", metavar="TIME", help="leave out calls that took less than TIME (10us)")
    parser.add_argument(
        "--sched", action="store_true", help="record when each thread had a processor, and waits for the GIL"
    )
    parser.add_argument("--no-sched", dest="sched", action="store_false", help="do not (default)")
    parser.add_argument(
        "--compensate", action="store_true", help="learn what recording costs, for report --compensated"
    )
    parser.add_argument(
        "--budget", metavar="SHARE", help="recording takes at most this share of the CPU time (5%%); see the guide"
    )
    parser.add_argument("--no-children", action="store_true", help="leave out child processes")
    parser.add_argument("--snapshot-signal", metavar="SIG", help="write a snapshot on this signal (USR2, …)")
    parser.add_argument(
        "--trigger",
        metavar="SPEC",
        action="append",
        help="write a snapshot when NAME>TIME, rss>SIZE or raise:TYPE comes true (may be repeated)",
    )
    parser.add_argument("--max-snapshots", metavar="N", type=int, default=10, help="at most N (default: 10)")
    parser.add_argument(
        "--engine",
        metavar="E",
        default="auto",
        help="how to hook in: turbo, safe (slower, by the interpreter's own hooks), or auto (default), which chooses",
    )
    parser.add_argument(
        "--only", metavar="FUNC", action="append", help="record only functions of this name, and what they call"
    )
    parser.add_argument("--max-depth", metavar="N", type=int, help="leave out calls that are deeper than N")
    parser.add_argument("--exceptions", action="store_true", help="record where exceptions are raised, and caught")


def add_bounds(parser: Parser) -> None:
    parser.add_argument("--max-size", metavar="SIZE", help="keep the newest records, in a file of at most SIZE (256M)")
    parser.add_argument("--last", metavar="TIME", help="keep only what was recorded in the last TIME (30s, 5m)")


def check_quantities(options: Namespace) -> None:
    """Raises ValueError, which names the option."""
    from vestige.base.quantities import parse_file_bound, parse_share, parse_time

    if options.max_size is not None:
        parse_file_bound("--max-size", options.max_size)
    if options.last is not None:
        parse_time("--last", options.last)
    if getattr(options, "min_duration", None) is not None:
        parse_time("--min-duration", options.min_duration)
    if getattr(options, "budget", None) is not None:
        parse_share("--budget", options.budget)


def recorded(options: Namespace) -> dict[str, Any]:
    """The arguments of a profile."""
    return {
        "with_stack": True,
        "overwrite": options.force,
        "engine": options.engine,
        "c_functions": not options.no_c,
        "include": options.include,
        "exclude": options.exclude,
        "record_args": options.record_args,
        "only": options.only,
        "max_depth": options.max_depth,
        "exceptions": options.exceptions,
        "gc": not options.no_gc,
        "max_size": options.max_size,
        "keep_last": options.last,
        "min_duration": options.min_duration,
        "sched": options.sched,
        "compensate": options.compensate,
        "budget": options.budget,
        "children": not options.no_children,
        "triggers": options.trigger,
        "snapshot_signal": options.snapshot_signal,
        "max_snapshots": options.max_snapshots,
    }
