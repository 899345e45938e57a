"""Real applications, bare and under `vestige run`: each must print the same and end the same way.

    python proofs/apps.py                        all of them, with the Python that has torch
    python proofs/apps.py --apps flask-debug ray --show

apps_listed.py lists what runs, the programs are in apps/. The applications are installed into build/proofs/apps-<version>,
to which the vestige of `make develop` is added. Outcomes are kept in build/proofs: an application that runs again gets
a new row in results/apps-<version>.md, the others keep theirs. Exit code 1 if an application behaves differently.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from apps_listed import APPS, App
from started import ending, started, text_of
from ways import HERE, KEPT, ROOT, TIMED_OUT, Python

PROGRAMS = HERE / "apps"
REQUIREMENTS = HERE / "apps-requirements.txt"
CACHE = KEPT / "apps-cache"  # has the recorder of torch's operators, which is built once
TIMEOUT_S = 900.0
# Text that differs in every run of any program: durations, times of day, addresses, process ids, a client's ports.
UNSTEADY = [
    (r"\b\d+(\.\d+)?\s?(s|ms|seconds?)\b", "<time>"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,]\d+)?( ?[+-]\d\d:?\d\d)?", "<date>"),
    (r"\d\d/[A-Z][a-z]{2}/\d{4}[: ]\d\d:\d\d:\d\d", "<date>"),
    (r"\b\d\d:\d\d:\d\d\b", "<clock>"),
    (r"0x[0-9a-f]{6,}", "<address>"),
    (r"(?i)\b(pid:?|process|worker \(pid:?)([ =\[]+)\d+", r"\1\2<pid>"),
    (r"\[\d{2,7}\]", "[<pid>]"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
]


@dataclass
class Run:
    """How an application behaved: its compared output, its CPU time, and the state of its trace."""

    end: str = ""
    stdout: str = ""
    stderr: str = ""
    answers: str = ""  # the output of a server's client
    cpu_s: float = 0.0
    trace: str = ""
    faults: list[str] = field(default_factory=list)

    @property
    def behaviour(self) -> list[str]:
        parts = {"end": self.end, "stdout": self.stdout, "stderr": self.stderr, "client": self.answers}
        return [f"{name}: {line}" for name, text in parts.items() for line in text.splitlines()]


class Place:
    """Returns the folder in which an application runs: always the same path, with only the programs in it."""

    def __init__(self, python: Python) -> None:
        self.python = python
        self.base = Path(tempfile.mkdtemp(prefix="apps-"))
        self.folder = self.base / "place"

    def run(self, app: App, recorded: bool) -> Run:
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.copytree(PROGRAMS, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        for name in app.sources:
            unpack(self.python, name, self.folder)
        if app.stdlib:
            copy_stdlib(self.python, app.stdlib, self.folder)
        port = free_port()
        fill = {"bin": str(Path(self.python.path).parent), "port": str(port)}
        words = [word.format(**fill) for word in app.words]
        trace = self.base / "t.vst"
        if recorded:
            words = ["-m", "vestige", "run", "-q", "-o", str(trace), *words]
        run = self._execute(app, words, [word.format(**fill) for word in app.client])
        for name in ("stdout", "stderr", "answers"):
            setattr(run, name, steady(getattr(run, name), app, port))
        if recorded:
            self._look_at(trace, run)
        return run

    def _execute(self, app: App, words: list[str], client: list[str]) -> Run:
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VESTIGE"))}
        variables |= {"PYTHONHASHSEED": "0", "TMPDIR": str(self.base), "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        variables |= {
            "HOME": str(self.base),
            "COLUMNS": "100",
            "PATH": f"{Path(self.python.path).parent}:{os.environ['PATH']}",
        }
        variables |= {"XDG_CACHE_HOME": str(CACHE), **app.variables}
        where = self.folder / app.folder
        run = Run()
        with open(self.base / "out", "w+b") as out, open(self.base / "err", "w+b") as err:
            with started([self.python.path, *words], where, variables, out, err) as process:
                if client:
                    run.answers = ask([self.python.path, *client], where, variables)
                    time.sleep(0.5)  # the server's output after its last answer
                    stop = os.killpg if app.as_terminal else os.kill
                    stop(process.pid, app.signal)
                run.end, run.cpu_s = wait(process.pid)
            run.stdout, run.stderr = text_of(out), text_of(err)
        return run

    def _look_at(self, trace: Path, run: Run) -> None:
        """Returns whether the traces can be read and lost no records, and how much they hold."""
        command = [self.python.path, "-m", "vestige", "info", "--json", str(trace)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            run.faults.append(f"the trace cannot be read: {done.stderr.strip()}")
            return
        facts = json.loads(done.stdout)
        processes = facts.get("processes", [facts])
        records = sum(process["records"] for process in processes)
        lost = sum(process["lost"] for process in processes)
        run.trace = f"{len(processes)} | {records:,}"
        if lost:
            run.faults.append(f"{lost} records lost")
        if not records:
            run.faults.append("the trace is empty")


def wait(pid: int) -> tuple[str, float]:
    """Returns how the process ended, and the CPU time of it and of the children that it waited for."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return ending(os.waitstatus_to_exitcode(status)), usage.ru_utime + usage.ru_stime
        time.sleep(0.02)
    return TIMED_OUT, 0.0


def ask(command: list[str], where: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=where, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S)
    return done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def steady(text: str, app: App, port: int) -> str:
    """Returns the text without the parts that differ in every run."""
    text = re.sub(rf"\b{port}\b", "<port>", text)
    for pattern, instead in [*app.unsteady, *UNSTEADY]:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    lines = [line.rstrip() for line in text.splitlines() if not any(re.search(p, line) for p in app.ignored)]
    return "\n".join(sorted(lines) if app.any_order else lines)


def unpack(python: Python, package: str, folder: Path) -> None:
    """Returns the sources of an installed package, including tests; downloads them once."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run([python.path, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    kept = KEPT / "sources" / f"{package}-{version}"
    if not kept.exists():
        pip = [python.path, "-m", "pip", "download", "-qq", "--no-deps", "--no-binary", package, "-d", str(kept)]
        subprocess.run([*pip, f"{package}=={version}"], check=True, stderr=subprocess.DEVNULL)
    (archive,) = kept.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")
    (unpacked,) = folder.glob(f"{package}-*")
    unpacked.rename(folder / package)


def copy_stdlib(python: Python, package: str, folder: Path) -> None:
    code = f"import {package} as p; print(p.__file__)"
    file = subprocess.run([python.path, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    shutil.copytree(Path(file).parent, folder / "code" / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "code").rglob("*.py"):
        path.chmod(0o644)


def environment(version: str) -> Python:
    """Returns the folder of the applications. Makes it if it does not exist, or if the list of packages has changed."""
    folder = KEPT / f"apps-{version}"
    done = folder / "requirements"
    base = ROOT / ".venv" / version
    place = f"lib/python{version}/site-packages"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        print(f"installing applications for Python {version}", flush=True)
        subprocess.run([base / "bin" / "python", "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", REQUIREMENTS], check=True, stderr=subprocess.DEVNULL)
        done.write_text(REQUIREMENTS.read_text())
    # Only the package: the other files installed with it are the tests' own tools.
    installed = folder / place
    for name in ("vestige", *[path.name for path in (base / place).glob("vestige-*.dist-info")]):
        link = installed / name
        if not link.is_symlink():
            link.symlink_to(base / place / name)
    python = Python(version, str(folder / "bin" / "python"))
    variables = {**os.environ, "XDG_CACHE_HOME": str(CACHE)}
    subprocess.run([python.path, "-m", "vestige.torch.build"], env=variables, check=True)
    return python


def versions(python: Python) -> str:
    wanted = re.findall(r"^[a-z][\w-]*", REQUIREMENTS.read_text(), re.MULTILINE)
    code = "import sys, importlib.metadata as m\nfor name in sys.argv[1:]: print(name, m.version(name))"
    lines = subprocess.run([python.path, "-c", code, *wanted], capture_output=True, text=True, check=True).stdout
    return ", ".join(lines.splitlines())


@dataclass
class Result:
    """Runs an application bare and recorded, and compares."""

    app: App
    bare: list[Run]
    recorded: list[Run]

    @property
    def differences(self) -> list[str]:
        """Returns lines that no bare run printed, and lines that every bare run printed but a recorded run did not."""
        told = []
        for run in self.recorded:
            if not any(run.behaviour == bare.behaviour for bare in self.bare):
                lines = difflib.unified_diff(
                    self.bare[0].behaviour, run.behaviour, "bare", "recorded", lineterm="", n=0
                )
                told += [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            told += run.faults
        return list(dict.fromkeys(told))

    @property
    def slowdown(self) -> float:
        return min(run.cpu_s for run in self.recorded) / min(run.cpu_s for run in self.bare)

    def row(self) -> str:
        bare, recorded = self.bare[0], self.recorded[-1]
        same = f"**{len(self.differences)} lines differ**" if self.differences else "same"
        cpu = min(run.cpu_s for run in self.bare)
        return f"| {self.app.name} | {bare.end} | {same} | {recorded.trace or '- | -'} | {cpu:.1f} | {self.slowdown:.2f} |\n"


def prove(place: Place, app: App) -> Result:
    """Bare and recorded runs alternate, so that both meet the same load."""
    result = Result(app, [], [])
    for _ in range(app.rounds):
        result.bare.append(place.run(app, recorded=False))
        result.recorded.append(place.run(app, recorded=True))
    return result


HEAD = """\
# Applications on Python {version}: bare and recorded

Each application ran bare and under `vestige run`, in turns and equally often. "same" means that

- it printed the same on stdout and stderr, and its client saw the same, except for durations, dates, addresses and the
  numbers of processes;
- it ended in the same way;
- all its traces can be read, and none lost a record.

A client asked each server for pages, and then sent the signal by which people stop it. The last column is the least CPU
time of the recorded runs divided by the least CPU time of the bare runs. Both include child processes that the
application waited for. Most of these programs mainly import and compile modules. That is the worst case: many short
calls, each made for the first time. Some ratios come from single runs on a busy machine and may be off by a fifth.
flask-debug ran without watchdog. With watchdog, in an environment this large, its watch of all packages overflows and
starts over, bare as well as recorded.

With {packages}.

| application | end | behaviour | processes | records | bare, s of CPU | recorded, times that |
|---|---|---|--:|--:|--:|--:|
"""


def keep(version: str, result: Result) -> None:
    file = KEPT / f"apps-{version}-results" / f"{result.app.name}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"row": result.row(), "differences": result.differences}))


def write(path: Path, python: Python) -> None:
    """Writes a page of the stored results, in the order of the list."""
    files = [KEPT / f"apps-{python.version}-results" / f"{app.name}.json" for app in APPS]
    results = [json.loads(file.read_text()) | {"name": file.stem} for file in files if file.exists()]
    differing = [result for result in results if result["differences"]]
    tail = "\nNo application behaves differently.\n" if not differing else "\nDifferences:\n"
    for result in differing:
        lines = "\n".join(f"    {line[:160]}" for line in result["differences"][:12])
        tail += f"\n{result['name']}:\n\n{lines}\n"
    head = HEAD.format(version=python.full, packages=versions(python))
    path.write_text(head + "".join(result["row"] for result in results) + tail)


def main() -> int:
    parser = argparse.ArgumentParser(description="Real applications, bare and recorded.")
    parser.add_argument("--python", default="3.11", metavar="3.12", help="the version to run them with (default: 3.11)")
    parser.add_argument("--apps", nargs="+", metavar="NAME", help="only these applications")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs in each way (default: 3)")
    parser.add_argument("--show", action="store_true", help="show each bare output")
    options = parser.parse_args()
    unknown = set(options.apps or ()) - {app.name for app in APPS}
    if unknown:
        parser.error(f"no such application: {', '.join(sorted(unknown))}")

    place = Place(environment(options.python))
    results = []
    for app in [app for app in APPS if not options.apps or app.name in options.apps]:
        app.rounds = options.rounds or app.rounds
        result = prove(place, app)
        results.append(result)
        keep(options.python, result)
        print(result.row(), end="", flush=True)
        shown = result.bare[0].behaviour if options.show else []
        print("".join(f"    {line}\n" for line in [*shown, *result.differences[:40]]), end="", flush=True)
    shutil.rmtree(place.base, ignore_errors=True)
    write(HERE / "results" / f"apps-{options.python}.md", place.python)
    return 1 if any(result.differences for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
