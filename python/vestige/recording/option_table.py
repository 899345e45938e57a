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

    flags     of the command line. Those of a FLAG that is on by default turn it off
    help      of the flags
    python    what the docstring of profile() says, if not `help`; None: profile() has no such keyword
    off       a flag that undoes the option where [tool.vestige] has it
    commands  that have the flags
    traits    often: the short help shows it. once: about a single process, so neither its children nor [tool.vestige]
              have it. code: names code to load, so neither [tool.vestige] nor those who attach may. session: a field of
              _core.Session. torch: torch.profiler has this keyword too
    needs     other options, and why
    against   options that cannot be used together with this one
    pythons   that have it; "" for all
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
        python="a .vst file to record to, which must not exist unless overwrite is True. It can be read up to the last "
            "record even if the process is killed. Default: a temporary file that is removed by itself. `{rank}` in it "
            "is the rank"),
    Option("overwrite", FLAG, False, "--force --overwrite", "overwrite FILE", commands=ALL, traits="often once session",
        python="replace an existing file"),
    Option("storage", STORAGE, "auto", "--storage",
        "how to write FILE: mapped, copied, or auto (default), which copies to disks that may stall (NFS, FUSE)",
        metavar="MODE", commands=ALL, traits="session",
        python='how to write the file: "mapped", "copied", or "auto", which is copied where a disk may keep a thread '
            "waiting (NFS, Lustre, FUSE, …). A copied recording goes to a local file, which another process copies"),
    Option("quiet", FLAG, False, "-q --quiet", "no report at the end", python=None, commands=ALL, traits="often"),
    Option("view", FLAG, False, "--view", "show the trace in the browser when the recording has ended", python=None,
        traits="often"),
    ),
    "which calls": (
    Option("with_stack", FLAG, None, "", "", traits="torch session",
        python="record calls; False leaves annotations, instants and counters. Default True, after install() False"),
    Option("c_functions", FLAG, True, "--no-c", "leave out functions written in C", traits="often session",
        python="record calls of functions written in C"),
    Option("include", NAMES, None, "--include", "record only functions in these files", metavar="PAT", traits="session",
        python="glob patterns of source files; only functions in these are recorded. A pattern without a slash is "
            "compared with the file's name alone"),
    Option("exclude", NAMES, None, "--exclude", "leave out functions in these files", metavar="PAT",
        traits="often session",
        python="patterns of source files whose functions are left out"),
    Option("only", NAMES, None, "--only", "record only functions of this name, and what they call", metavar="FUNC",
        traits="often session",
        python="names or patterns, as for record_args: only calls of these functions, and the calls inside them, are "
            "recorded"),
    Option("max_depth", DEPTH, None, "--max-depth", "leave out calls that are deeper than N", metavar="N",
        traits="session",
        python="record only so many levels of calls, counted from the calls that are open at the start, or with `only` "
            "from its functions"),
    Option("min_duration", TIME, None, "--min-duration", "leave out calls that took less than TIME (10us)",
        metavar="TIME", traits="session",
        python='"10us", seconds or a timedelta: calls that took less, and made none that took as long, are left out '
            "and counted; their time becomes their caller's own. Annotations and operators are always kept"),
    Option("spins", FLAG, True, "--no-spins", "leave out functions that only look again and again", traits="session",
        python="False leaves out functions that spin: they look again and again, without sleeping"),
    Option("qualified_names", FLAG, None, "", "", traits="session",
        python="name Python functions `Class.f` instead of `f`. Default True; after install() False, like torch"),
    ),
    "what else is recorded": (
    Option("record_args", NAMES, None, "--record-args",
        "record arguments and results of functions of this name ('load_*')", metavar="PATTERN", traits="session",
        python="names or patterns (`f`, `Class.f`, `load_*`) of functions whose arguments and return values are "
            "recorded"),
    Option("sched", FLAG, False, "--sched", "record when each thread had a processor, and waits for the GIL",
        off="--no-sched", traits="often session",
        python="record when each thread had a processor, so that every call has a running time and a duration, "
            "and waits for the GIL (Linux; unknown if the system denies this information)"),
    Option("waits", WAITS, None, "--waits", "a further function that waits ('io mybus.Socket recv')", metavar="ENTRY",
        traits="session",
        python="further functions that wait, for reports: `io mybus.Socket recv` (a method in C), "
            "`spin mybus/ring.py Ring.get` (a Python function), `lock take_turn` (a function in C). The first word is "
            "the reason: lock, io, sleep, child or spin"),
    Option("exceptions", FLAG, False, "--exceptions", "record where exceptions are raised and caught",
        traits="session", needs={"with_stack": "without it, exceptions are not seen"},
        python="record where exceptions are raised and who catches them, by type. Messages are not recorded, nor the "
            "exceptions by which iterators and generators end"),
    Option("lines", FLAG, True, "--no-lines", "leave out the lines from which functions are called", traits="session",
        python="record the lines from which functions are called: of all calls that take a quarter of a millisecond, "
            "and of some shorter ones"),
    Option("gc", FLAG, None, "--no-gc", "leave out garbage collections", traits="session",
        python="record garbage collections. Default True, after install() False"),
    Option("annotation_stacks", FLAG, False, "", "",
        python="record the call stack at the beginning of each record_function()"),
    Option("profile_memory", FLAG, False, "--memory", "record allocations", commands="attach", traits="torch",
        python="also record allocations and frees, of Python's allocators and of malloc and its kin, each allocation "
            "with its Python stack"),
    Option("memory_native_stacks", FLAG, False, "--native", "also record native frames (C and C++)", commands="memory",
        traits="session", python="with profile_memory: also record native frames, of functions written in C and C++"),
    Option("memory_sample", SIZE, None, "--sample", "record about one allocation in SIZE bytes (512K)", metavar="SIZE",
        commands="memory", traits="session",
        python='bytes, or "512K": record about one allocation per so many bytes, and estimate the totals'),
    Option("memory_native_allocators", FLAG, True, "--python-only",
        "only Python's own allocators, not malloc and its kin", commands="memory", traits="session",
        python="False: only Python's own allocators, not malloc and its kin"),
    Option("devices", DEVICES, False, "--devices", "record activities of GPUs (CUPTI); not yet run on a GPU",
        commands="run", traits="code",
        python="True records activities of GPUs by CUPTI, if CUDA is there; this has not yet run on a GPU. A list of "
            "libraries records activities of other devices, by the collectors in these libraries"),
    Option("collector", NAMES, None, "--collector", "record activities of other devices, by the collector in LIB",
        metavar="LIB", commands="run", traits="code", python=None),
    ),
    "size and cost": (
    Option("max_size", BOUND, None, "--max-size", "keep the newest records, in a file of at most SIZE (256M)",
        metavar="SIZE", commands=ALL, traits="session",
        python='bytes, or "256M": the largest size of the recording; the oldest records are dropped. At least 1M'),
    Option("last", TIME, None, "--last", "keep only the records of the last TIME (30s, 5m)", metavar="TIME",
        commands=ALL, traits="often session",
        python='seconds, a timedelta, or "30s": keep only the records of this last stretch of time. Records that '
            "`last` or max_size drops are counted; names are never dropped"),
    Option("budget", SHARE, None, "--budget", "limit recording to this share of the CPU time (5%)",
        metavar="SHARE", traits="often", needs={"with_stack": "without it, no calls are recorded"},
        against=("profile_memory", "min_duration", "only", "max_depth"), pythons=WITH_GIL,
        python='0.05 or "5%": recording takes at most this share of the CPU time. If recording every call would take '
            "more, the functions that are called most are left out for a time; reports estimate their calls and times"),
    Option("compensate", FLAG, False, "--compensate", "measure what recording costs, for report --compensated",
        python="measure first, for a third of a second, what recording costs: see compensated_time_total of events"),
    Option("engine", ENGINE, "auto", "--engine",
        "how to hook in: turbo, safe (slower, by the interpreter's own hooks), or auto (default), which chooses",
        metavar="E", traits="session",
        python='how to hook in: "turbo", "safe" (slower, by hooks of the interpreter, which show C functions that '
            'Python calls but not those that C calls), or "auto", which is turbo where it is proven and usable'),
    ),
    "snapshots": (
    Option("triggers", NAMES, None, "--trigger", "write a snapshot when NAME>TIME, rss>SIZE or raise:TYPE comes true",
        metavar="SPEC",
        python="write a snapshot when one of these happens: `step>200ms` (a record_function or a function of that name "
            "took longer), `raise:ValueError` (an exception of that type), `rss>2G` (memory of the process)"),
    Option("snapshot_signal", SIGNAL, None, "--snapshot-signal", "write a snapshot on this signal (USR2, …)",
        metavar="SIG", python="name of the signal on which vestige writes a snapshot"),
    Option("max_snapshots", SNAPSHOTS, 10, "--max-snapshots", "write at most N snapshots (default: 10)", metavar="N",
        python="the largest number of snapshots. They are written next to `output`, as `<output>-snapshot<n>.vst`"),
    ),
    "the program": (
    Option("children", FLAG, False, "--no-children", "leave out child processes", commands=ALL,
        needs={"output": "their files are named after it"},
        python="also record child processes, forked or started anew, each into a file of its own next to `output`: "
            "t.<pid>.vst for t.vst"),
    Option("torch_profiler", FLAG, False, "--torch-profiler", "record only where the program uses torch.profiler",
        commands="run", traits="once", python=None),
    Option("paused", FLAG, False, "--paused", "start paused; `vestige attach` starts and stops recording",
        commands="run", traits="once", python=None),
    Option("rank", RANK, None, "", "",
        python="which process of a distributed program this is. Default: RANK, LOCAL_RANK and WORLD_SIZE of the "
            "environment"),
    Option("local_rank", RANK, None, "", "", python="the number of this process on its host. Default: as for rank"),
    Option("world_size", RANK, None, "", "", python="how many processes the program has. Default: as for rank"),
    ),
}
# fmt: on

OPTIONS = tuple(option for group in GROUPS.values() for option in group)
KEYWORDS = tuple(option for option in OPTIONS if option.python is not None)  # keywords of profile()
COUPLED = tuple(option for option in OPTIONS if option.needs or option.against)
BY_NAME = {option.name: option for option in OPTIONS}
