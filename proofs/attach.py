"""Attaches to a web server and detaches from it, over and over, while clients send requests.

    python proofs/attach.py --times 2000 --results proofs/results/attach.md

The server runs in the Python that runs this file. From 3.14 on, vestige attaches by sys.remote_exec, before by gdb.
After each recording, the server must have no hook of vestige's, its trace must be whole, and it must have as many
threads and descriptors as before. Every answer must be right. The growth of the process is measured from the end of the
first tenth.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import vestige
from vestige.cli.attach import command

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from attach_server import branch

CLIENTS = 2
HEAD = """# Attach

A web server (`proofs/attach_server.py`, a thread a request) is attached to and left again, over and over, while clients
send it requests without a pause. Each time it records for some milliseconds. After each recording no hook is left, the
trace is whole, and the server has no more threads or descriptors than before; each answer of the server is compared with
what it must be. Growth is counted from the end of the first tenth to the end. `make check NAME=attach` makes this table.
Latencies and standstills are of a machine that had ten times as much work as processors; here gdb was allowed 20
seconds, where `vestige attach` allows one. A standstill is not known ("–") where the command itself was stopped
meanwhile. The process grows most at first, and later by some 100 bytes each time: the text of an environment variable
for child processes, which glibc does not free.

With the JIT on, CPython itself grows. The same server without vestige, on 3.15.2: by 1,392 KiB in 10,750 answers, and by
2,160 KiB in 13,285 if a thread of its own switches events of `sys.monitoring` on and off 1,800 times meanwhile. That is
0.13 and 0.16 KiB an answer; attached to it was 0.23.

| Python | way in | JIT | attached | RSS growth, KiB | answers (wrong) | median and 99th percentile of an answer, ms | longest standstill, s | seconds | result |
|---|---|---|---|---|---|---|---|---|---|
"""


class Client(threading.Thread):
    """Sends requests to the server and compares the answers."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.taken, self.wrong, self.over = [], 0, False

    def run(self):
        number = 0
        while not self.over:
            number += 1
            begun = time.perf_counter()
            try:
                answer = ask(self.port, f"work/{number % 500}")
            except OSError:
                answer = None
            self.taken.append(time.perf_counter() - begun)
            self.wrong += answer != branch(number % 500)
            time.sleep(0.002)


def ask(port, what):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=60) as answer:
        return answer.read().decode()


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def attach(pid, trace, words):
    """Records for a moment. Returns how many seconds the process stood still."""
    said = []
    saved, command._say = command._say, said.append
    try:
        command.main([str(pid), "-q", "--for", "5ms", "--force", "-o", trace, *words])
    finally:
        command._say = saved
    still = [line for line in said if line.startswith("it stood still")]
    return float(still[0].split()[-2]) if still else 0.0


def settled(pid, kind, at_most):
    """Returns the number of threads or descriptors, once those of requests are gone."""
    for _ in range(200):
        count = len(os.listdir(f"/proc/{pid}/{kind}"))
        if count <= at_most:
            break
        time.sleep(0.005)
    return count


def prove(times, words):
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(HERE / "attach_server.py")]
        server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        clients = []
        try:
            pid, port = map(int, server.stdout.readline().split())
            clients = [Client(port) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            return watch(pid, port, str(Path(folder) / "t.vst"), times, words, clients)
        finally:
            for client in clients:
                client.over = True
            server.kill()
            server.wait()


def watch(pid, port, trace, times, words, clients):
    trouble, still, begun = [], 0.0, time.monotonic()
    first = rss_kib(pid)
    for number in range(times):
        if number == times // 10:
            first = rss_kib(pid)
        still = max(still, attach(pid, trace, words))
        left, clean = ask(port, "hooks/"), vestige.Trace(trace).info()["clean"]
        if left != "0" or not clean:
            trouble.append(f"after {number + 1}: {left} hooks left, clean: {clean}")
        if number % 100 == 99:
            print(f"{number + 1:6,}  {rss_kib(pid):,} KiB  {time.monotonic() - begun:.0f} s", flush=True)
    grown = rss_kib(pid) - first
    for client in clients:
        client.over = True
    for client in clients:
        client.join()
    # Between requests, a server has its main thread, its socket, its selector and the standard streams.
    counts = settled(pid, "task", 1), settled(pid, "fd", 5)
    if counts[0] > 1 or counts[1] > 5:
        trouble.append(f"{counts[0]} threads and {counts[1]} descriptors are left")
    taken = sorted(one for client in clients for one in client.taken)
    wrong = sum(client.wrong for client in clients)
    if wrong:
        trouble.append(f"{wrong} answers are wrong")
    return {
        "times": times,
        "grown": grown,
        "answers": len(taken),
        "wrong": wrong,
        "median_ms": taken[len(taken) // 2] * 1e3,
        "late_ms": taken[int(len(taken) * 0.99)] * 1e3,
        "still_s": still,
        "seconds": time.monotonic() - begun,
        "trouble": trouble,
    }


def line_of(found, way):
    jit = getattr(sys, "_jit", None)
    on = "–" if jit is None or not jit.is_available() else "on" if jit.is_enabled() else "off"
    cells = (
        platform.python_version(),
        way,
        on,
        f"{found['times']:,}",
        f"{found['grown']:+,}",
        f"{found['answers']:,} ({found['wrong']})",
        f"{found['median_ms']:.1f} / {found['late_ms']:.1f}",
        f"{found['still_s']:.2f}" if found["still_s"] else "–",
        f"{found['seconds']:.0f}",
        "; ".join(found["trouble"][:3]) or "clean",
    )
    return "| " + " | ".join(cells) + " |"


def put_line(path, head, line, keys):
    """Replaces the line whose first `keys` cells are equal."""
    lines = path.read_text().removeprefix(head).splitlines() if path.exists() else []
    key = line.split(" | ")[:keys]
    kept = [one for one in lines if one.startswith("| ") and one.split(" | ")[:keys] != key]
    order = sorted([*kept, line], key=lambda one: [int(part) for part in one.split()[1].split(".")])
    path.write_text(head + "\n".join(order) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--gdb", action="store_true", help="by gdb, also from 3.14 on")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    by_gdb = options.gdb or sys.version_info < (3, 14)
    words = ["--wait", "120s", "--standstill", "20s", *(["--gdb"] if options.gdb else [])]
    found = prove(options.times, words)
    line = line_of(found, "gdb" if by_gdb else "sys.remote_exec")
    print(line)
    if options.results:
        put_line(options.results, HEAD, line, 3)
    return 1 if found["trouble"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
