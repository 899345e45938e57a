"""Measures the time and memory of `vestige memory-report` for 10 million records, and of each export.

    python bench/memory_report.py build/c/bench/memory_history [RECORDS]

The history is made by the program given, which `meson setup -Dbench=true` builds: four threads, 20,000 stacks of up to
40 frames, a million blocks live at a time. CPU seconds and the largest resident set of the whole command, which includes
Python's own. The limits for the report are 10 s and 1 GiB.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import time

STACKS = 20_000
LIVE = 1_000_000
FORMATS = ("", ".html", ".folded", ".json", ".csv", ".pickle")


def measure(command):
    """Returns seconds, CPU seconds and KiB of a command."""
    started = time.monotonic()
    pid = os.spawnv(os.P_NOWAIT, command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command} failed")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    tool = sys.argv[1]
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    vestige = os.path.join(sysconfig.get_path("scripts"), "vestige")
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "m.vst")
        subprocess.run([tool, trace, str(records), str(STACKS), str(LIVE)], check=True, stdout=subprocess.DEVNULL)
        print(f"{records:,} records, {os.path.getsize(trace) / 1e6:.0f} MB")
        print(f"{'':>10} {'s':>7} {'CPU s':>7} {'MiB':>6} {'file MB':>8}")
        for suffix in FORMATS:
            out = os.path.join(folder, f"m{suffix}")
            more = ["-o", out] if suffix else ["--format", "json"]
            with open(os.devnull, "w") as nowhere:
                before = os.dup(1)
                os.dup2(nowhere.fileno(), 1)
                seconds, cpu, peak = measure([vestige, "memory-report", trace, *more])
                os.dup2(before, 1)
                os.close(before)
            size = os.path.getsize(out) / 1e6 if suffix else 0
            print(f"{suffix or 'report':>10} {seconds:>7.2f} {cpu:>7.2f} {peak / 1024:>6.0f} {size:>8.0f}", flush=True)
            if suffix:
                os.unlink(out)


if __name__ == "__main__":
    main()
