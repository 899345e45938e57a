"""Runs commands of vestige, given as JSON {name: words} on stdin, each in a forked process. Prints for each command its
exit code, its stderr, by how many bytes its memory grew, and how many bytes it wrote. The argument is a trace, which is
read once so that all modules are imported before.

A command that takes more than 4 GiB of address space, 1 GiB of disk or 20 s of processor time is killed.
"""

import json
import os
import resource
import sys

import arrow_reader
import vestige
import vestige.cli
import vestige.cli.diff.command
import vestige.cli.export
import vestige.cli.memory.report
import vestige.cli.pack
import vestige.cli.recover
import vestige.cli.report.command
import vestige.cli.report.memory
import vestige.cli.report.tree
import vestige.cli.view
import vestige.viewer.embed
from vestige._core import table_names


def run(words):
    if words == ["TABLES"]:
        words = [sys.argv[1]]
        with vestige.open(*words) as traces:
            for table in table_names:
                arrow_reader.count_rows(getattr(traces, table))
        return
    sys.argv = ["vestige", *words]
    vestige.cli.main()


def child(words, out, err):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    os.dup2(out, 1)
    os.dup2(err, 2)
    code = 0
    try:
        run(words)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def outcome_of(words):
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
    out, err = os.open("stdout", flags), os.open("stderr", flags)
    before = resident()
    pid = os.fork()
    if pid == 0:
        child(words, out, err)
    _, status, usage = os.wait4(pid, 0)
    os.close(out)
    os.close(err)
    written = max(os.path.getsize(name) for name in os.listdir("."))
    with open("stderr", errors="replace") as file:
        said = file.read()
    for name in os.listdir("."):
        os.remove(name)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "said": said, "grown": usage.ru_maxrss * 1024 - before, "written": written}


print(json.dumps({name: outcome_of(words) for name, words in json.load(sys.stdin).items()}))
