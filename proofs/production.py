"""An hour of the production recipe: a web server under `vestige run --budget 2% --last 60s --trigger …`.

    python proofs/production.py --minutes 60 --results proofs/results/production.md

Servers (production_server.py) get the same requests, one after the other in changing order: half of them are recorded,
half are bare. There are several of each, since two processes of the same program differ by a percent, however long they
run: by where their memory lies, and by the seed of their hashes. A thread reads the clock all the time. When this
process could not run, the requests of that time are left out and counted.
"""

import argparse
import http.client
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import vestige

HERE = Path(__file__).parent
BUDGET, POINT = 0.02, 0.01
SNAPSHOTS = 10  # the most snapshots that `vestige run` writes
WINDOW_S = 60
RECIPE = ["--budget", f"{BUDGET:.0%}", "--last", f"{WINDOW_S}s", "--trigger", "answer>200ms"]
USUAL_ROWS, LARGE_ROWS, LARGE_SHARE = 600, 6000, 0.03  # so that the 99th percentile lies among large pages
SLOW_MS, SLOW_TIMES = 300, 15  # more often than snapshots are possible
CONNECTION = 100  # requests
STALL_S = 0.1
PAIRS = 4  # pairs of a recorded and a bare server; each pair has its own hash seed
RSS_LIMIT_KIB = 2048
TRACE = "t.vst"
HEAD = f"""# Production

{PAIRS} web servers (`proofs/production_server.py`) under `vestige run {" ".join(RECIPE[:-1])} 'answer>200ms'`, and {PAIRS} bare ones
beside them. A recorded and a bare one have the same seed of hashes. All get the same requests, one after the other in changing order, at a steady pace: pages of
{USUAL_ROWS} rows, {LARGE_SHARE:.0%} of them ten times as large, a new connection every {CONNECTION}. A request that takes too long
fires the trigger {SLOW_TIMES} times; {SNAPSHOTS} snapshots are kept. All figures are from the end of the warm-up on, which is a
tenth, at least {2 * WINDOW_S} s. Overhead is CPU time a request, of the whole process, of the recorded servers beside the bare
ones; latencies are what the client sees, of all servers of a kind. In brackets: the interval that holds 95 % of resampled runs (other servers of
each kind, other stretches of ten seconds). Noise is the same figure of half of the bare servers beside the other half. The bar is the budget and {POINT:.0%}: "held",
"above" where all of the interval is above it, else "not decided". Requests of moments in which the client itself was kept
from running are left out. Of memory, files and snapshots the largest of the servers is told. `make check NAME=production` makes this table.

| Python | minutes | requests each (left out) | CPU of a request, µs | overhead (noise) | 99th percentile, ms | 99th percentile over bare (noise) | RSS growth, KiB (bare) | the file at the end of the warm-up, largest after it, MiB | snapshots of those asked for, largest, MiB | result |
|---|---|---|---|---|---|---|---|---|---|---|
"""


class Clock(threading.Thread):
    """Notes when this process did not run although it should have."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stalls, self.over = [], False

    def run(self):
        seen = time.monotonic()
        while not self.over:
            time.sleep(0.02)
            now = time.monotonic()
            if now - seen > STALL_S:
                self.stalls.append((seen, now))
            seen = now

    def stalled(self, since):
        """Returns whether the process stalled between then and now. While a stall lasts, the lateness of the clock's
        thread shows it.
        """
        return bool(self.stalls) and self.stalls[-1][1] > since


class Server:
    def __init__(self, name, command, folder, seed):
        self.name, self.folder = name, folder
        folder.mkdir()
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONHASHSEED": str(seed)},
            )
        self.pid, self.port = map(int, self.process.stdout.readline().split())
        self.asked = 0

    def ask(self, path):
        """Returns the answer, and how long it took."""
        if self.asked % CONNECTION == 0:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        self.asked += 1
        begun = time.monotonic()
        self.connection.request("GET", path)
        answer = self.connection.getresponse().read()
        taken = time.monotonic() - begun
        if self.asked % CONNECTION == 0:
            self.connection.close()
        return answer, taken

    def cpu(self):
        """Returns the CPU seconds of the process, exact to the nanosecond: clock_getcpuclockid(3)."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=300)


class Stretch:
    """The requests of ten seconds."""

    def __init__(self, servers):
        self.taken = {server.name: [] for server in servers}
        self.cpu = {server.name: -server.cpu() for server in servers}
        self.count = self.left_out = 0

    def close(self, servers):
        for server in servers:
            self.cpu[server.name] += server.cpu()


class Run:
    def __init__(self, recorded, bare, options):
        servers = [*recorded, *bare]
        self.recorded, self.bare, self.servers, self.options = recorded, bare, servers, options
        self.random = random.Random(options.seed)
        self.stretches, self.trouble = [], []
        self.sizes, self.rss = [], {server.name: [] for server in servers}
        self.clock = Clock()

    def stretch(self, until, slow):
        stretch = Stretch(self.servers)
        due = time.monotonic()
        while due < until:
            due = max(due + 1 / self.options.rate, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
            self.round(stretch, USUAL_ROWS if self.random.random() > LARGE_SHARE else LARGE_ROWS)
        stretch.close(self.servers)
        if slow:
            for server in self.servers:
                server.ask(f"/slow/{SLOW_MS}")
        return stretch

    def round(self, stretch, rows):
        begun, answers, taken = time.monotonic(), [], {}
        for server in self.random.sample(self.servers, len(self.servers)):
            answer, taken[server.name] = server.ask(f"/page/{rows}")
            answers.append(answer)
        if len(set(answers)) != 1:
            self.trouble.append("answers differ")
        stretch.count += 1
        # A stall becomes known only when the clock's thread runs again.
        if time.monotonic() - begun > STALL_S:
            time.sleep(0.05)
        if self.clock.stalled(begun):
            stretch.left_out += 1
        else:
            for name, seconds in taken.items():
                stretch.taken[name].append(seconds)

    def note_sizes(self):
        self.sizes.append(max(os.path.getsize(server.folder / TRACE) for server in self.recorded))
        for server in self.servers:
            self.rss[server.name].append(server.rss_kib())

    def whole(self):
        """Measures ten seconds at a time; drops the warm-up."""
        self.clock.start()
        begun = time.monotonic()
        seconds = self.options.minutes * 60
        warm_up = max(seconds / 10, min(2 * WINDOW_S, seconds / 2))
        slow_every, slow_at, warm = seconds / (SLOW_TIMES + 1), 0.0, False
        while (passed := time.monotonic() - begun) < seconds:
            slow = passed - slow_at > slow_every
            slow_at += slow_every if slow else 0
            stretch = self.stretch(time.monotonic() + min(10, seconds / 20), slow)
            if passed >= warm_up:
                if not warm:
                    warm = True
                    self.sizes_before, self.sizes = self.sizes, []
                    self.rss = {name: [] for name in self.rss}
                self.stretches.append(stretch)
            self.note_sizes()
            if len(self.sizes) % 30 == 0:
                kib = [sizes[-1] for sizes in self.rss.values()]
                print(f"{passed:6.0f} s  RSS, KiB {kib}  file {self.sizes[-1]:,} bytes", flush=True)
        self.clock.over = True
        self.clock.join()


# ---- figures -----------------------------------------------------------------------------------------------------


def cpu_of(stretches, servers):
    spent = sum(stretch.cpu[server.name] for stretch in stretches for server in servers)
    return spent / len(servers) / sum(stretch.count for stretch in stretches)


def late_of(stretches, servers):
    taken = sorted(one for stretch in stretches for server in servers for one in stretch.taken[server.name])
    return taken[int(len(taken) * 0.99)]


def with_interval(figure, stretches, servers, others, times=200):
    """Returns (share, low, high) of one group of servers' figure compared with the other group's."""

    def beside(chosen, some, of_others):
        return figure(chosen, some) / figure(chosen, of_others) - 1

    chance = random.Random(1)
    resampled = sorted(
        beside(*(chance.choices(what, k=len(what)) for what in (stretches, servers, others))) for _ in range(times)
    )
    return beside(stretches, servers, others), resampled[int(times * 0.025)], resampled[int(times * 0.975)]


def verdict(share, low):
    return "held" if share <= BUDGET + POINT else "above" if low > BUDGET + POINT else "not decided"


def interval_text(interval):
    return "{:+.1%} [{:+.1%}, {:+.1%}]".format(*interval)


def snapshots_of(server):
    return [path.stat().st_size for path in server.folder.glob("t-snapshot*.vst")]


def not_written(server):
    """Returns the number of snapshots beyond the allowed number."""
    found = re.search(r"([\d,]+) more w", (server.folder / "log").read_text())
    return int(found[1].replace(",", "")) if found else 0


def growth_of(sizes):
    """Returns the change from the mean of the first quarter to the mean of the last."""
    quarter = max(1, len(sizes) // 4)
    return sum(sizes[-quarter:]) / quarter - sum(sizes[:quarter]) / quarter


def trouble_of(run, ended, growth, sizes):
    trouble = list(run.trouble)
    if any(ended):
        trouble.append(f"the servers ended with {ended}")
    if not all(vestige.Trace(server.folder / TRACE).info()["clean"] for server in run.recorded):
        trouble.append("a trace is not clean")
    if growth[0] - max(growth[1], 0) > RSS_LIMIT_KIB:
        trouble.append("memory grew")
    if sizes[1] > 1.25 * sizes[0] + (1 << 20):
        trouble.append("the file grew")
    for server in run.recorded:
        written = snapshots_of(server)
        if not 1 <= len(written) <= SNAPSHOTS or max(written) > max(sizes) + (1 << 20):
            trouble.append(f"{len(written)} snapshots, the largest has {max(written, default=0):,} bytes")
    return trouble


def figures(run, ended):
    growth = [max(growth_of(run.rss[server.name]) for server in servers) for servers in (run.recorded, run.bare)]
    sizes = max(run.sizes_before), max(run.sizes)
    trouble = trouble_of(run, ended, growth, sizes)
    kinds = (run.recorded, run.bare), (run.bare[::2], run.bare[1::2])
    cpu, late = ([with_interval(figure, run.stretches, *kind) for kind in kinds] for figure in (cpu_of, late_of))
    results = {"CPU": verdict(*cpu[0][:2]), "99th percentile": verdict(*late[0][:2])}
    trouble += [f"{what} above" for what, said in results.items() if said == "above"]
    most = max(run.recorded, key=lambda server: max(snapshots_of(server), default=0))
    snapshots = snapshots_of(most)
    told = (
        platform.python_version(),
        f"{run.options.minutes:g}",
        f"{sum(one.count for one in run.stretches):,} ({sum(one.left_out for one in run.stretches):,})",
        f"{cpu_of(run.stretches, run.recorded) * 1e6:,.0f}",
        f"{interval_text(cpu[0])} ({interval_text(cpu[1])})",
        f"{late_of(run.stretches, run.recorded) * 1e3:.1f}",
        f"{interval_text(late[0])} ({interval_text(late[1])})",
        "{:+,.0f} ({:+,.0f})".format(*growth),
        "{:.1f}, {:.1f}".format(*(size / 2**20 for size in sizes)),
        f"{len(snapshots)} of {len(snapshots) + not_written(most)}, {max(snapshots, default=0) / 2**20:.1f}",
        "; ".join([*dict.fromkeys(trouble), *(f"{what} {said}" for what, said in results.items() if said != "above")]),
    )
    return trouble, "| " + " | ".join(told) + " |"


def put_line(path, line):
    """Replaces the line of the same Python."""
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [one for one in lines if re.match(r"\| 3\.", one) and one.split()[1] != line.split()[1]]
    order = sorted([*kept, line], key=lambda one: [int(part) for part in one.split()[1].split(".")])
    path.write_text(HEAD + "\n".join(order) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=25, help="number of requests per second to each server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    program = [sys.executable, str(HERE.resolve() / "production_server.py")]
    recorded = [sys.executable, "-m", "vestige", "run", "-o", TRACE, *RECIPE, program[1]]
    with tempfile.TemporaryDirectory(prefix="vestige-production-") as name:
        servers = []
        try:
            for kind, command in (("recorded", recorded), ("bare", program)):
                servers += [Server(f"{kind} {i}", command, Path(name) / f"{kind}{i}", i) for i in range(PAIRS)]
            run = Run(servers[:PAIRS], servers[PAIRS:], options)
            run.whole()
            ended = [server.end() for server in servers]
        finally:
            for server in servers:
                server.process.kill()
                server.process.wait()
        print((servers[0].folder / "log").read_text())
        trouble, line = figures(run, ended)
        report = [sys.executable, "-m", "vestige", "report", str(servers[0].folder / TRACE)]
        print(subprocess.run(report, capture_output=True, text=True, check=False).stdout)
        print(line)
    if options.results:
        put_line(options.results, line)
    return 1 if trouble else 0


if __name__ == "__main__":
    raise SystemExit(main())
