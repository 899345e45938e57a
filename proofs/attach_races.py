"""Attaches to programs at difficult moments, while the command or gdb is killed at random moments.

    python proofs/attach_races.py --times 200 --results proofs/results/attach-races.md

The programs run in the Python that runs this file. Up to 3.13, vestige attaches by gdb, from 3.14 on by
sys.remote_exec, and with --listen through a socket. Each program (proofs/attach_races_targets.py) must end as it does
alone: with its output, its messages and its exit code. At the end, a program that still runs is attached to once more,
with nothing killed; this must work.
"""

import argparse
import collections
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from attach import put_line
from attach_races_targets import ENDING, UNTIL_TOLD

KINDS = (*UNTIL_TOLD, *ENDING)
LOOPS = 3  # attachments one after the other to a program that continues
END_S = 120.0  # limit for every step: the machine may be busy
# The interpreter's own message if it has no room for the script of sys.remote_exec: docs/guides/attach.md.
SAID = "Error executing debugger script"
HEAD = """# Attaching at difficult moments

Programs (`proofs/attach_races_targets.py`) that start, end, fork, become themselves again by exec, hold the GIL in C,
recurse to the limit, run 60 threads or receive some thousand signals a second are attached to and left again, in loops
where they go on. In every third attachment the command is killed (SIGKILL) at a random moment, in every third one by gdb
gdb is. Each program has to end as it does alone, and one that goes on has to be attached to once more. A refusal is one
line, mostly that the program has ended or runs another program. `make check NAME=attach-races` makes this table.

A program can die where gdb itself is killed inside a call (docs/guides/attach.md); the column says how many did. Any
other difference is a failure. From 3.14 on the interpreter may write "Error executing debugger script" where the main
thread has no room for one more frame, which the column before the last counts.

| Python | way in | attached | recorded | refused | command killed | gdb killed | died of that | interpreter said so | result |
|---|---|--:|--:|--:|--:|--:|--:|--:|---|
"""


class Found:
    """The results."""

    def __init__(self):
        self.counts = collections.Counter()
        self.trouble = []
        self.lines = collections.Counter()  # the reason for a refusal, without numbers


class Program:
    """A running program."""

    def __init__(self, kind, folder, listens, delay_s):
        self.kind = kind
        self.socket = str(Path(folder) / "s") if listens else None
        environment = {**os.environ, **({"LISTEN_AT": self.socket} if listens else {})}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = [sys.executable, "-W", "ignore", str(HERE / "attach_races_targets.py"), kind]
        # becomes Python after the command has looked, while it is about to look, or while gdb stops the process
        if kind == "start":
            words = ["/bin/sh", "-c", 'sleep "$0"; exec "$@"', f"{delay_s:.3f}", *words]
            delay_s = 0.0
        self.process = subprocess.Popen(words, cwd=folder, env=environment, text=True, **pipes)
        time.sleep(delay_s)

    def end(self):
        """Returns how the program ended: exit code, output, messages."""
        try:
            stdout, stderr = self.process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return ("does not end", "", "")
        return (self.process.returncode, stdout, stderr)

    def attach(self, folder, *words):
        place = ["--socket", self.socket] if self.socket else [str(self.process.pid)]
        command = [
            sys.executable,
            "-m",
            "vestige",
            "attach",
            *place,
            "-q",
            "--force",
            "-o",
            str(Path(folder) / "t.vst"),
        ]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, "--standstill", "10s", *words], cwd=folder, **pipes)


def child_named(pid, name):
    """Returns a child of a process by name; None if there is none now."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return next((int(one) for one in children if Path(f"/proc/{one}/comm").read_text().strip() == name), None)
    except OSError:
        return None


def kill_gdb(command, delay_s):
    """Kills the command's gdb some time after its start. Returns whether there was a gdb."""
    while command.poll() is None:
        gdb = child_named(command.pid, "gdb")
        if gdb is not None:
            time.sleep(delay_s)
            try:
                os.kill(gdb, signal.SIGKILL)
            except ProcessLookupError:
                return False
            return True
        time.sleep(0.001)
    return False


def attach_once(program, folder, chance, found, way):
    """Attaches, and may kill the command or its gdb meanwhile. Returns whether gdb was killed."""
    found.counts["attached"] += 1
    words = ("--for", f"{chance.randint(1, 50)}ms", "--wait", "3s")
    command = program.attach(folder, *words)
    what = chance.choice(("nothing", "command", "gdb" if way == "gdb" else "nothing"))
    killed_gdb = False
    if what == "command":
        time.sleep(chance.uniform(0, 1.2))
        if command.poll() is None:
            command.kill()
            found.counts["command killed"] += 1
    elif what == "gdb":
        killed_gdb = kill_gdb(command, chance.uniform(0, 0.25))
        found.counts["gdb killed"] += killed_gdb
    try:
        _, said = command.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        command.kill()
        command.communicate()
        found.trouble.append(f"{program.kind}: the command does not end")
        return killed_gdb
    if command.returncode == 0:
        found.counts["recorded"] += 1
    elif command.returncode > 0:
        found.counts["refused"] += 1
        last = said.strip().splitlines()[-1]
        found.lines["".join("N" if letter.isdigit() else letter for letter in last)] += 1
        if not last.startswith("vestige: ") or "Traceback" in said:
            found.trouble.append(f"{program.kind}: {said}")
    return killed_gdb


def attach_later(program, folder):
    """Attaches undisturbed; returns why this failed, "" if it worked. The recording of a killed command may still be
    ending, or its gdb may still run.
    """
    until = time.monotonic() + END_S
    while True:
        command = program.attach(folder, "--for", "5ms", "--wait", f"{END_S}s")
        _, said = command.communicate()
        if command.returncode == 0:
            return ""
        if time.monotonic() > until or not any(text in said for text in ("recorded already", "another program (gdb")):
            return said.strip()
        time.sleep(0.05)


def race(kind, chance, found, way, bare):
    with tempfile.TemporaryDirectory() as folder:
        program = Program(kind, folder, way == "listen", chance.uniform(0, 0.6))
        ends, killed_gdb = kind in ENDING, False
        for _ in range(1 if ends else LOOPS):
            if program.socket:
                while not os.path.exists(program.socket) and program.process.poll() is None:
                    time.sleep(0.001)
            killed_gdb = attach_once(program, folder, chance, found, way) or killed_gdb
            if killed_gdb and program.process.poll() is not None:
                break
        later = "" if ends or program.process.poll() is not None else attach_later(program, folder)
        code, stdout, stderr = program.end()
        if SAID in stderr:
            found.counts["said"] += 1
            stderr = ""
        if (code, stdout, stderr) == bare:
            if later:
                found.trouble.append(f"{kind}: a later attachment: {later}")
        elif killed_gdb and code in (-signal.SIGTRAP, -signal.SIGSEGV):
            found.counts["died of that"] += 1
        else:
            found.trouble.append(f"{kind}: {code} {stdout.strip()!r} {stderr.strip()!r}, alone {bare}")


def prove(times, way, seed, kinds=KINDS):
    chance, found = random.Random(seed), Found()
    bare = {}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            bare[kind] = Program(kind, folder, False, 1.0).end()
    begun = time.monotonic()
    while found.counts["attached"] < times:
        for kind in kinds:
            race(kind, chance, found, way, bare[kind])
        print(f"{time.monotonic() - begun:4.0f} s  {dict(found.counts)}  {found.trouble}", flush=True)
    for line, count in found.lines.most_common():
        print(f"{count:4}  {line}")
    return found


def line_of(found, way):
    names = ("attached", "recorded", "refused", "command killed", "gdb killed", "died of that", "said")
    cells = [platform.python_version(), way, *(f"{found.counts[name]:,}" for name in names)]
    troubles = "; ".join(found.trouble[:3]).replace("|", "/").replace("\n", " ")
    fine = "all others ended as alone" if found.counts["died of that"] else "all ended as alone"
    return f"| {' | '.join(cells)} | {troubles or fine} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--listen", action="store_true", help="the programs listen")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    way = "listen" if options.listen else "gdb" if sys.version_info < (3, 14) else "sys.remote_exec"
    print(f"seed {options.seed}")
    found = prove(options.times, way, options.seed)
    line = line_of(found, way)
    print(line)
    if options.results:
        put_line(options.results, HEAD, line, 2)
    return 1 if found.trouble else 0


if __name__ == "__main__":
    raise SystemExit(main())
