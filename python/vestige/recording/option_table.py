"""The table of all options of a recording. From it come the options of `vestige run`, `attach` and `memory`
(cli/recording_options.py), the keys of [tool.vestige], the keywords of profile() (scripts/write_options.py), their
checks and the arguments of _core.Session (options.py), the options of child processes, and the reference.

An option has one name: its keyword, its place in a command's parsed options, and the field of C. Importing vestige
reads this file, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEPTH_MAX = 1_000_000_000
SNAPSHOTS_MAX = 10_000
WAIT_REASONS = ("lock", "io", "sleep", "child", "spin")


class Kind:
    """A kind of values."""

    def __init__(self, type: str, read: Callable[[str, Any], Any] | None = None, *, unit: str = "") -> None:
        self.type = type  # as in an annotation
        # checks a value that somebody gave, and returns the value for a session; errors name the option
        self.read = read
        self.unit = unit  # follows the option's name in a session


def read_names(name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list of str, not {type(values).__name__}")
    strings = tuple(values)
    for value in strings:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of str, not of {type(value).__name__}")
    return strings


def read_waits(name: str, values: Any) -> tuple[str, ...]:
    entries = read_names(name, values)
    for entry in entries:
        words = entry.split(" ")
        is_plain = entry.isascii() and entry.isprintable() and not set(entry) & set(';"\\')
        if not is_plain or words[0] not in WAIT_REASONS or not 2 <= len(words) <= 3 or not all(words):
            raise ValueError(
                f"{name}: not a function that waits: {entry!r}; write a reason ({', '.join(WAIT_REASONS)}), the type "
                "of a C method or the end of a Python file's path, and the name: 'io mybus.Socket recv'"
            )
    return entries


def read_count(name: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be from 1 to {most:,}, not {value}")
    return value


def parsed_by(function: str) -> Callable[[str, Any], Any]:
    def read(name: str, value: Any) -> Any:
        # imported only if somebody gave a value, so that importing vestige stays cheap
        from vestige.base import quantities

        return getattr(quantities, function)(name, value)

    return read


FLAG = Kind("bool")  # checked in options.py
NAMES = Kind("Sequence[str] | None", read_names)
WAITS = Kind("Sequence[str] | None", read_waits)
DEPTH = Kind("int | None", lambda name, value: read_count(name, value, DEPTH_MAX))
SNAPSHOTS = Kind("int", lambda name, value: read_count(name, value, SNAPSHOTS_MAX))
TIME = Kind("str | float | timedelta | None", parsed_by("parse_time"), unit="_ns")
SIZE = Kind("str | int | None", parsed_by("parse_size"), unit="_bytes")
BOUND = Kind("str | int | None", parsed_by("parse_file_bound"))  # a limit of the file's size
SHARE = Kind("float | str | None", parsed_by("parse_share"))
STORAGE = Kind("str")  # read in options.py
ENGINE = Kind("str")  # read in options.py, which knows the engines of this Python
SIGNAL = Kind("str | int | None")  # read in flight.py
# checked by the system call that opens the file
PATH = Kind("str | bytes | os.PathLike[str] | os.PathLike[bytes] | None")
RANK = Kind("int | None")  # read in ranks.py
DEVICES = Kind("bool | Sequence[str]")  # read in devices.py


class Option:
    """A row of the table.

    flags     the option's flags on the command line; the flags of a FLAG that is on by default turn the option off
    help      help text of the flags
    python    text in the docstring of profile(), if it differs from `help`; None: profile() has no such keyword
    off       a flag that turns the option off if [tool.vestige] turns it on
    commands  the commands that have the flags
    traits    often: the short help shows the option. once: concerns a single process, so neither its children nor
              [tool.vestige] have the option. code: names code to load, so neither [tool.vestige] nor people who attach
              may set the option. session: a field of _core.Session. torch: torch.profiler has this keyword, too
    needs     {required option: reason}
    against   options that cannot be combined with this option
    pythons   the Pythons that have the option; "": all
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Any,
        flags: str,
        help: str,
        *,
        python: str | None = "",
        off: str = "",
        metavar: str | None = None,
        commands: str = "run attach",
        traits: str = "",
        needs: dict[str, str] | None = None,
        against: tuple[str, ...] = (),
        pythons: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.flags = flags
        self.help = help
        self.python = python
        self.off = off
        self.metavar = metavar
        self.commands = commands if flags else ""
        self.traits = traits
        self.in_session = "session" in self.traits
        self.needs = needs or {}
        self.against = against
        self.pythons = pythons

    @property
    def flag(self) -> str:
        """Returns the long flag; "" if there is none."""
        return next((flag for flag in self.flags.split() if flag.startswith("--")), "")

    @property
    def turns_off(self) -> bool:
        """Returns whether the flag turns the option off."""
        return self.kind is FLAG and (self.default is not False or self.flag.startswith("--no-"))


WITH_GIL = "with a GIL"
ALL = "run attach memory"  # commands

# fmt: off
GROUPS = {  # in the order of the help
    "trace and report": (
    Option("output", PATH, None, "-o --output", "trace to write; {rank} in it is the rank (default: <name>.<pid>.vst)",
        metavar="FILE", commands=ALL, traits="often once",
        python="path of the .vst file to write; the file must not exist unless overwrite is True. If the process is "
            "killed, the file can be read up to the last record. `{rank}` in the path is replaced by the rank. "
            "Default: a temporary file, which is deleted when it is no longer needed"),
    Option("overwrite", FLAG, False, "--force --overwrite", "overwrite FILE", commands=ALL, traits="often once session",
        python="replace an existing file"),
    Option("storage", STORAGE, "auto", "--storage",
        "how to write FILE: mapped, copied, or auto (default), which copies to disks that may stall (NFS, FUSE)",
        metavar="MODE", commands=ALL, traits="session",
        python='how to write the file: "mapped" writes to the file directly; "copied" writes to a local file, which '
            'another process copies; "auto" copies if the disk may make a thread wait (NFS, Lustre, FUSE, …)'),
    Option("quiet", FLAG, False, "-q --quiet", "no report at the end", python=None, commands=ALL, traits="often"),
    Option("view", FLAG, False, "--view", "show the trace in the browser when the recording has ended", python=None,
        traits="often"),
    ),
    "which calls": (
    Option("with_stack", FLAG, None, "", "", traits="torch session",
        python="record calls; if False, only annotations, instants and counters are recorded. Default: True; after "
            "install() False"),
    Option("c_functions", FLAG, True, "--no-c", "leave out functions written in C", traits="often session",
        python="record calls of functions written in C"),
    Option("include", NAMES, None, "--include", "record only functions in these files", metavar="PAT", traits="session",
        python="glob patterns of source files; only functions in matching files are recorded. A pattern without a "
            "slash is compared only with the file's name"),
    Option("exclude", NAMES, None, "--exclude", "leave out functions in these files", metavar="PAT",
        traits="often session",
        python="glob patterns of source files; functions in matching files are left out"),
    Option("only", NAMES, None, "--only", "record only functions of this name, and what they call", metavar="FUNC",
        traits="often session",
        python="names or patterns of functions, as for record_args; only calls of these functions, and calls inside "
            "them, are recorded"),
    Option("max_depth", DEPTH, None, "--max-depth", "leave out calls that are deeper than N", metavar="N",
        traits="session",
        python="the largest depth of recorded calls, counted from the calls that are open at the start, or, with "
            "`only`, from the functions that it names"),
    Option("min_duration", TIME, None, "--min-duration", "leave out calls that took less than TIME (10us)",
        metavar="TIME", traits="session",
        python='"10us", seconds or a timedelta: shorter calls are left out and counted, and their time counts as their '
            "caller's own time. Annotations and operators are never left out"),
    Option("spins", FLAG, True, "--no-spins", "leave out functions that only spin (check again and again)",
        traits="session",
        python="record functions that spin: they check a condition again and again without sleeping"),
    Option("qualified_names", FLAG, None, "", "", traits="session",
        python="name Python functions `Class.f` instead of `f`. Default: True; after install() False, as in torch"),
    ),
    "what else is recorded": (
    Option("record_args", NAMES, None, "--record-args",
        "record arguments and results of functions of this name ('load_*')", metavar="PATTERN", traits="session",
        python="names or patterns (`f`, `Class.f`, `load_*`) of functions; their arguments and return values are "
            "recorded"),
    Option("sched", FLAG, False, "--sched", "record when each thread had a processor, and waits for the GIL",
        off="--no-sched", traits="often session",
        python="record when each thread ran on a processor, and waits for the GIL; each call then has a running time "
            "besides its duration (only on Linux; running times are unknown if the system denies this information)"),
    Option("waits", WAITS, None, "--waits", "name a further function that waits ('io mybus.Socket recv')",
        metavar="ENTRY", traits="session",
        python="further functions that reports shall treat as waiting: `io mybus.Socket recv` (a method in C), "
            "`spin mybus/ring.py Ring.get` (a Python function), `lock take_turn` (a function in C). The first word is "
            "the reason for the wait: lock, io, sleep, child or spin"),
    Option("exceptions", FLAG, False, "--exceptions", "record where exceptions are raised and caught",
        traits="session", needs={"with_stack": "without it, exceptions are not seen"},
        python="record the type of each exception, where it is raised, and which function catches it. Messages are not "
            "recorded; exceptions that only end iterators and generators are ignored"),
    Option("lines", FLAG, True, "--no-lines", "leave out the lines from which functions are called", traits="session",
        python="record the lines from which functions are called: for all calls that take at least a quarter of a "
            "millisecond, and for some shorter calls"),
    Option("gc", FLAG, None, "--no-gc", "leave out garbage collections", traits="session",
        python="record garbage collections. Default: True; after install() False"),
    Option("annotation_stacks", FLAG, False, "", "",
        python="record the call stack at the beginning of each record_function()"),
    Option("profile_memory", FLAG, False, "--memory", "record allocations", commands="attach", traits="torch",
        python="also record allocations and frees by Python's allocators and by malloc and related functions; each "
            "allocation has its Python stack"),
    Option("memory_native_stacks", FLAG, False, "--native", "also record native frames (C and C++)", commands="memory",
        traits="session", python="with profile_memory: also record native frames (functions written in C and C++)"),
    Option("memory_sample", SIZE, None, "--sample", "record about one allocation in SIZE bytes (512K)", metavar="SIZE",
        commands="memory", traits="session",
        python='bytes, or "512K": record about one allocation for each such amount of memory, and estimate the totals'),
    Option("memory_native_allocators", FLAG, True, "--python-only",
        "only Python's own allocators, not malloc and its kin", commands="memory", traits="session",
        python="with profile_memory: record malloc and related functions; if False, only Python's own allocators"),
    Option("devices", DEVICES, False, "--devices", "record activities of GPUs (CUPTI); not yet run on a GPU",
        commands="run", traits="code",
        python="True: record activities of GPUs with CUPTI, if CUDA is installed (not yet tested on a GPU). A list of "
            "paths: record activities of other devices with the collectors in these libraries"),
    Option("collector", NAMES, None, "--collector", "record activities of other devices, by the collector in LIB",
        metavar="LIB", commands="run", traits="code", python=None),
    ),
    "size and cost": (
    Option("max_size", BOUND, None, "--max-size", "keep the newest records, in a file of at most SIZE (256M)",
        metavar="SIZE", commands=ALL, traits="session",
        python='bytes, or "256M": the largest size of the file, at least 1M; the oldest records are dropped'),
    Option("last", TIME, None, "--last", "keep only the records of the last TIME (30s, 5m)", metavar="TIME",
        commands=ALL, traits="often session",
        python='seconds, a timedelta, or "30s": keep only the records of the last 30 seconds. Records that `last` or '
            "max_size drops are counted; names are never dropped"),
    Option("budget", SHARE, None, "--budget", "limit recording to this share of the CPU time (5%)",
        metavar="SHARE", traits="often", needs={"with_stack": "without it, no calls are recorded"},
        against=("profile_memory", "min_duration", "only", "max_depth"), pythons=WITH_GIL,
        python='0.05 or "5%": recording takes at most this share of the CPU time. If recording every call would take '
            "more, vestige leaves out the most-called functions for a time, and reports estimate their calls "
            "and times"),
    Option("compensate", FLAG, False, "--compensate", "measure the cost of recording, for report --compensated",
        python="first measure the cost of recording, for a third of a second; events then have compensated_time_total"),
    Option("engine", ENGINE, "auto", "--engine",
        "how to hook in: turbo, safe (slower, by the interpreter's own hooks), or auto (default), which chooses",
        metavar="E", traits="session",
        python='how calls are recorded: "turbo"; "safe", which is slower and uses only hooks of the interpreter, which '
            'report C functions called from Python but not from C; or "auto", which selects turbo on Pythons for which '
            'turbo is tested'),
    ),
    "snapshots": (
    Option("triggers", NAMES, None, "--trigger", "write a snapshot when NAME>TIME, rss>SIZE or raise:TYPE comes true",
        metavar="SPEC",
        python="write a snapshot when one of these happens: `step>200ms` (a record_function or a function with this "
            "name took longer), `raise:ValueError` (an exception of this type), `rss>2G` (the process uses more "
            "memory)"),
    Option("snapshot_signal", SIGNAL, None, "--snapshot-signal", "write a snapshot on this signal (USR2, …)",
        metavar="SIG", python="name of the signal that makes vestige write a snapshot"),
    Option("max_snapshots", SNAPSHOTS, 10, "--max-snapshots", "write at most N snapshots (default: 10)", metavar="N",
        python="the largest number of snapshots. They are written next to `output`, as `<output>-snapshot<n>.vst`"),
    ),
    "the program": (
    Option("children", FLAG, False, "--no-children", "leave out child processes", commands=ALL,
        needs={"output": "their files are named after it"},
        python="also record child processes, forked or started; each child has its own file next to `output`: "
            "t.<pid>.vst for t.vst"),
    Option("torch_profiler", FLAG, False, "--torch-profiler", "record only where the program uses torch.profiler",
        commands="run", traits="once", python=None),
    Option("paused", FLAG, False, "--paused", "start paused; `vestige attach` starts and stops recording",
        commands="run", traits="once", python=None),
    Option("rank", RANK, None, "", "",
        python="number of this process in a distributed program. Default: the environment variable RANK"),
    Option("local_rank", RANK, None, "", "",
        python="number of this process on its host. Default: the environment variable LOCAL_RANK"),
    Option("world_size", RANK, None, "", "",
        python="number of processes of the program. Default: the environment variable WORLD_SIZE"),
    ),
}
# fmt: on

OPTIONS = tuple(option for group in GROUPS.values() for option in group)
KEYWORDS = tuple(option for option in OPTIONS if option.python is not None)  # keywords of profile()
COUPLED = tuple(option for option in OPTIONS if option.needs or option.against)
BY_NAME = {option.name: option for option in OPTIONS}
