"""Programs whose processes count their own calls, to compare the counts with the processes' traces.

Every process of such a program loads counted.py, which writes to a file how often the process called step(), before the
process can end.
"""

import json
from pathlib import Path

from traces import totals
from vestige import Trace

COUNTED = """
    import os, sys

    def step():
        pass

    def work(times):
        for _ in range(times):
            step()
        fd = os.open(os.path.join(os.path.dirname(__file__), "counts"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, f"{os.getpid()} {times}\\n".encode())
        os.close(fd)
    """
CHILD = """
    import sys
    from counted import work
    work(int(sys.argv[1]))
    """


class File:
    """The trace of one process."""

    def __init__(self, path):
        trace = Trace(str(path))
        self.path = path
        self.info = trace.info()
        self.pid = self.info["pid"]
        self.clean = self.info["clean"]
        self.id = self.info["trace_id"]
        self.metadata = {key: json.loads(text) for key, text in trace.metadata().items()}
        self.calls = {}
        for name, calls, *_ in totals(trace, all_windows=True):
            self.calls[name] = self.calls.get(name, 0) + calls
        self.threads = trace.threads()

    @property
    def name(self):
        return self.metadata["vestige.process_name"]

    @property
    def parent(self):
        return self.metadata["vestige.parent"]

    @property
    def steps(self):
        return sum(calls for name, calls in self.calls.items() if name.endswith(": step"))


def family(folder, name="t.vst"):
    """Returns the root's file and the files of its children."""
    root = File(folder / name)
    stem = name.removesuffix(".vst")
    others = [File(path) for path in sorted(Path(folder).glob(f"{stem}.*.vst"))]
    for child in others:
        assert child.metadata["vestige.root"] == root.id
        assert str(child.pid) in child.path.name.split(".")
    return root, others


def counted(folder):
    """Returns the counts that the processes wrote."""
    counts = {}
    for line in (folder / "counts").read_text().splitlines():
        pid, times = map(int, line.split())
        counts[pid] = counts.get(pid, 0) + times
    return counts


def traced(root, children):
    """Returns the counts in the processes' traces."""
    counts = {}
    for file in [root, *children]:
        if file.steps:
            counts[file.pid] = counts.get(file.pid, 0) + file.steps
    return counts


def write_programs(workplace):
    workplace.write("counted.py", COUNTED)
    workplace.write("child.py", CHILD)
