"""A program of several processes, each with its own trace: a parent, a child that it forks, and two that it starts."""

import os
import subprocess
import sys
import time

from vestige import Trace, profile
from vestige.render import render


def record(path, rank, parent, root, work):
    prof = profile(output=path, rank=rank, world_size=4)
    for key, value in {"vestige.parent": parent, "vestige.root": root}.items():
        if value is not None:
            prof._set_metadata(key, render(value))
    with prof:
        return work()


def in_parent(path):
    def start(number):
        return subprocess.Popen([sys.executable, __file__, path, root, str(os.getpid()), str(number)])

    def fork():
        recording.stop()  # starts another recording in the child
        recording.start()
        return os.fork()

    recording = profile(output=path, rank=0, world_size=4)
    with recording:
        root = Trace(path).info()["trace_id"]
        parent = {"pid": os.getpid(), "tid": os.getpid(), "how": "fork"}
        pid = fork()
        parent["time_ns"] = time.time_ns()
        if pid == 0:
            record(child_path(path), 1, parent, root, in_child)
            os._exit(0)
        os.waitpid(pid, 0)
        for process in [start(2), start(3)]:
            process.wait()


def in_child():
    return sum(range(1000))


def child_path(path):
    return f"{path.removesuffix('.vst')}.{os.getpid()}.vst"


if __name__ == "__main__":
    if len(sys.argv) == 2:
        in_parent(sys.argv[1])
    else:
        path, root, pid, number = sys.argv[1:]
        parent = {"pid": int(pid), "tid": None, "time_ns": time.time_ns(), "how": "spawn"}
        record(child_path(path), int(number), parent, root, in_child)
