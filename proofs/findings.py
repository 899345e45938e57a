"""Judges the first answer: programs with one planted cause and healthy programs, each recorded once by `vestige run`.

    python proofs/findings.py                              every program twice, on every Python that is here
    python proofs/findings.py --python 3.12 --cause lock   some of them
    python proofs/findings.py --keep FOLDER                keep programs, traces and reports there
    python proofs/findings.py --programs FOLDER            judge other programs, in files like those of planted/

planted/ has the programs: a file for each cause, in which `# %% planted: …` and `# %% healthy: …` begin a program, and
`# file: …` another file of the program. Lines that end in `# planted` are the lines to name. `NAME = 3  # 2..5` gets a random
value from that range, and words from `--` on in a title are options of `vestige run`. Every second run has as many
computing processes beside it as the machine has processors.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ways import HERE, ROOT, supported

PROGRAMS = HERE / "planted"
EXPLAINED = HERE / "findings_explained.txt"
RESULT = HERE / "results" / "findings.md"
TIMEOUT = 120.0
# The kinds of findings that name a cause, by the file with its programs. A healthy program must have none at all.
KINDS = {
    "many_requests": {"many requests"},
    "lock": {"lock"},
    "gil": {"GIL"},
    "blocked_sleep": {"blocked loop"},
    "blocked_cpu": {"blocked loop"},
    "imports": {"imports"},
    "collector": {"garbage collection"},
    "short_calls": {"short calls"},
    "same_arguments": {"same arguments"},
    "quadratic": {"growing"},
    "exceptions": {"exceptions"},
    "oversubscribed": {"oversubscribed", "GIL", "lock"},
    "slow_worker": {"slow worker"},
    "child": {"waiting"},
    "retry": {"retry"},
    "cache": {"cache"},
    "logging_hot": {"logging"},
    "idle": set(),
}
HEAD = """\
# Findings of programs with known causes

`make check NAME=findings` makes this page. Each program was recorded twice by `vestige run`, alone and beside as many
computing processes as there are processors; sizes are random. "Named" are runs whose report at the end has a finding of the
planted cause, "line" those whose finding also names a planted line as `path:line`. "More" are runs with another
finding beside it. Of a healthy program every finding is a false cause. Pythons: {pythons}.

| cause | programs | runs | named | line | more | healthy programs | runs | with a false cause |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
"""
SIZE = re.compile(r"^(\w+ = )[\d.]+(  # )([\d.]+)\.\.([\d.]+)$", re.MULTILINE)
PLACE = re.compile(r"([\w./-]+\.py)(?::|\()(\d+)")


@dataclass
class Program:
    cause: str  # the name of the file
    title: str
    is_healthy: bool
    options: list[str]  # of vestige run
    files: dict[str, str]

    def write(self, folder: Path, random_: random.Random) -> set[tuple[str, int]]:
        """Returns the planted lines."""
        lines = set()
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = SIZE.sub(lambda found: f"{found[1]}{between(found[3], found[4], random_)}", text)
            for number, line in enumerate(text.splitlines(), 1):
                if line.endswith("  # planted"):
                    lines.add((name, number))
            path.write_text(text.replace("  # planted\n", "\n"))
        return lines


def between(low: str, high: str, random_: random.Random) -> str:
    if "." in low:
        return f"{random_.uniform(float(low), float(high)):.5f}"
    return str(random_.randint(int(low), int(high)))


def programs_in(path: Path) -> Iterator[Program]:
    for part in re.split(r"^# %% ", path.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        kind, _, words = title.partition(": ")
        words, _, options = words.partition(" --")
        texts = re.split(r"^# file: (.*)\n", rest, flags=re.MULTILINE)
        files = {"main.py": texts[0].strip() + "\n"}
        files |= {name: text.strip() + "\n" for name, text in zip(texts[1::2], texts[2::2])}
        yield Program(path.stem, words, kind == "healthy", f"--{options}".split() if options else [], files)


@dataclass
class Run:
    """Holds the result of one run of a program."""

    program: Program
    version: str
    is_busy: bool
    found: list[dict[str, str]] = field(default_factory=list)
    named: bool = False
    line: bool = False
    trouble: str = ""

    @property
    def more(self) -> list[dict[str, str]]:
        return [each for each in self.found if each["kind"] not in KINDS[self.program.cause]]

    @property
    def is_right(self) -> bool:
        return not self.found if self.program.is_healthy else self.line

    def say(self) -> str:
        """A line for somebody who waits."""
        verdict = (
            "right" if self.is_right else "FALSE" if self.program.is_healthy else "line?" if self.named else "MISS"
        )
        machine = "busy" if self.is_busy else "idle"
        said = "".join(f"\n        {each['kind']}: {each['text']}" for each in self.found) if not self.is_right else ""
        kind = "healthy" if self.program.is_healthy else "planted"
        return f"{verdict:5} {self.version:5} {machine} {self.program.cause}: {kind}: {self.program.title} {self.trouble}{said}"


def judge(program: Program, version: str, is_busy: bool, seed: int, folder: Path) -> Run:
    run = Run(program, version, is_busy)
    lines = program.write(folder, random.Random(f"{program.cause} {program.title} {seed}"))
    vestige = [str(ROOT / ".venv" / version / "bin" / "python"), "-m", "vestige"]
    command = [*vestige, "run", "-o", "t.vst", *program.options, "main.py"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        run.trouble = "timed out"
        return run
    (folder / "stderr.txt").write_text(done.stderr)
    if done.returncode != 0:
        run.trouble = f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    traces = sorted(path.name for path in folder.glob("t*.vst"))
    told = subprocess.run(
        [*vestige, "report", *traces, "--findings", "--format", "json"], cwd=folder, capture_output=True, text=True
    )
    findings = json.loads(told.stdout)["findings"] if told.returncode == 0 else []
    kinds = {plain(each["text"]): each["kind"] for each in findings}
    for text in sentences(done.stderr):
        run.found.append({"kind": kinds.get(plain(text)) or kind_of(text), "text": text})
    if len(run.found) != len(findings) and not run.trouble:
        run.trouble = f"({len(findings)} in the report made later)"
    right = [each for each in run.found if each["kind"] in KINDS[program.cause]]
    run.named = bool(right)
    places = [(name, int(number)) for each in right for name, number in PLACE.findall(each["text"])]
    run.line = any(
        number == line and (name == file or name.endswith(f"/{file}"))
        for name, number in places
        for file, line in lines
    )
    return run


def sentences(report: str) -> list[str]:
    """The findings of a report, each of which is a line where there is no terminal."""
    return [line[2:] for line in report.splitlines() if line.startswith("• ")]


def kind_of(text: str) -> str:
    """The kind that a sentence links to, where the report made later has no such sentence."""
    linked = re.search(r"findings\.md#([\w-]+)\)", text)
    kind = linked[1].replace("-", " ") if linked else "only at the end"
    return "GIL" if kind == "gil" else kind


def plain(text: str) -> str:
    """Without numbers, which are others in a report of all processes."""
    return re.sub(r"\s+|[\d.,]+ ?(ns|µs|ms|s\b|min)?", "", text)


@contextmanager
def busy_machine(is_busy: bool) -> Iterator[None]:
    count = os.cpu_count() or 1 if is_busy else 0
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def explanations() -> dict[str, str]:
    """By cause and title, why a program is missed now and then."""
    if not EXPLAINED.exists():
        return {}
    rows = [line.split("|") for line in EXPLAINED.read_text().splitlines() if "|" in line and not line.startswith("#")]
    return {f"{cause.strip()}: {title.strip()}": why.strip() for cause, title, why in rows}


def table(runs: Sequence[Run]) -> str:
    text = ""
    sums = [0] * 8
    for cause in KINDS:
        planted = [run for run in runs if run.program.cause == cause and not run.program.is_healthy]
        healthy = [run for run in runs if run.program.cause == cause and run.program.is_healthy]
        if not planted and not healthy:
            continue
        row = [
            len({run.program.title for run in planted}),
            len(planted),
            sum(run.named for run in planted),
            sum(run.line for run in planted),
            sum(bool(run.more) for run in planted),
            len({run.program.title for run in healthy}),
            len(healthy),
            sum(not run.is_right for run in healthy),
        ]
        sums = [a + b for a, b in zip(sums, row)]
        text += f"| {cause.replace('_', ' ')} | {' | '.join(map(str, row))} |\n"
    text += f"| together | {' | '.join(map(str, sums))} |\n"
    recall, line, false = (
        part / max(whole, 1) for part, whole in ((sums[2], sums[1]), (sums[3], sums[1]), (sums[7], sums[6]))
    )
    return f"{text}\nRecall: {recall:.1%}; with the planted line: {line:.1%}. A false cause in {false:.1%} of the runs of healthy programs.\n"


def page(runs: Sequence[Run], pythons: Sequence[str]) -> str:
    text = HEAD.format(pythons=", ".join(pythons)) + table(runs)
    why = explanations()
    wrong: dict[str, list[Run]] = {}
    for run in runs:
        if not run.is_right:
            wrong.setdefault(f"{run.program.cause}: {run.program.title}", []).append(run)
    if wrong:
        text += "\n## Not right\n\n| program | runs | said | why |\n|---|---|---|---|\n"
    for name, those in sorted(wrong.items()):
        where = ", ".join(f"{run.version} {'busy' if run.is_busy else 'idle'}" for run in those)
        kinds = (
            ", ".join(sorted({each["kind"] for run in those for each in run.found})) or those[0].trouble or "nothing"
        )
        text += f"| {name} | {where} | {kinds} | {why.get(name, '')} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges the first answer by programs with known causes.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--cause", action="append", choices=list(KINDS), help="only these programs (may be repeated)")
    parser.add_argument("--title", help="only programs whose title has this")
    parser.add_argument("--programs", metavar="FOLDER", type=Path, default=PROGRAMS, help="judge other programs")
    parser.add_argument("--copies", type=int, default=2, help="runs of each program (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="other sizes")
    parser.add_argument("--idle", action="store_true", help="never beside computing processes")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep what was written in this folder")
    options = parser.parse_args()
    pythons = options.python or supported()
    programs = [each for cause in options.cause or KINDS for each in programs_in(options.programs / f"{cause}.py")]
    programs = [each for each in programs if (options.title or "") in each.title]
    runs = []
    for is_busy in (False,) if options.idle else (False, True):
        with busy_machine(is_busy):
            for copy in range(options.copies):
                for number, program in enumerate(programs):
                    if not options.idle and (copy + number) % 2 != is_busy:
                        continue
                    version = pythons[(number // 2 + copy) % len(pythons)]
                    folder = Path(tempfile.mkdtemp(prefix="findings-"))
                    run = judge(program, version, is_busy, options.seed + copy, folder)
                    runs.append(run)
                    print(run.say(), flush=True)
                    if options.keep:
                        name = re.sub(r"\W+", "-", f"{program.cause}-{program.title}")
                        kept = options.keep / f"{name}-{version}-{copy}"
                        shutil.rmtree(kept, ignore_errors=True)
                        shutil.copytree(folder, kept)
                    shutil.rmtree(folder, ignore_errors=True)
    print(table(runs))
    if not (options.python or options.cause or options.title or options.seed or options.programs != PROGRAMS):
        RESULT.write_text(page(runs, pythons))
    return 0 if all(run.is_right for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
