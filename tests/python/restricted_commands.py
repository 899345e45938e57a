"""Runs `vestige run`, `attach` and `attach --socket` to a program that listens, and prints how each went, as JSON:
`python restricted_commands.py PYTHON FOLDER [PREFIX …]`. All files are made in FOLDER. PREFIX goes before each command.
"""

import json
import os
import subprocess
import sys
import time

TIMEOUT_S = 60
PROGRAM = """\
def leaf():
    return 1

print(sum(leaf() for _ in range(1000)))
"""
WORKER = """\
import sys, time
if len(sys.argv) > 1:
    import vestige
    vestige.listen(sys.argv[1])

def leaf():
    return 1

print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    leaf()
    time.sleep(0.001)
"""


def run(words, prefix):
    done = subprocess.run([*prefix, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
    return done.returncode, done.stdout, done.stderr


def has_calls(python, trace):
    """Whether the trace can be read, here, and has the program's calls."""
    code = "import sys, vestige; print(any('leaf' in known.name for known in vestige.Trace(sys.argv[1]).definitions() if known))"
    return subprocess.run([python, "-c", code, trace], capture_output=True, text=True).stdout == "True\n"


def describe(python, code, errors, trace):
    if os.path.exists(trace) and has_calls(python, trace):
        return {"works": True, "code": code, "errors": errors}
    return {"works": False, "code": code, "errors": errors}


def record(python, folder, prefix, name, *options):
    trace = os.path.join(folder, name)
    code, out, errors = run([python, "-m", "vestige", "run", "-q", *options, "-o", trace, "-c", PROGRAM], prefix)
    if options:  # the copier may still be at work
        time.sleep(1)
        subprocess.run([python, "-m", "vestige", "info", trace], capture_output=True)
    return {**describe(python, code, errors, trace), "output": out}


def attach(python, folder, prefix, *, listens):
    name = "listen" if listens else "attach"
    trace, socket = os.path.join(folder, f"{name}.vst"), os.path.join(folder, "private", "s")
    words = [*prefix, python, "-c", WORKER, *([socket] if listens else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
        try:
            if worker.stdout.readline() != "ready\n":
                return {"works": False, "code": -1, "errors": "the program did not start"}
            target = ["--socket", socket] if listens else [str(worker.pid)]
            words = [python, "-m", "vestige", "attach", "-q", "-o", trace, "--for", "300ms", "--wait", "20s", *target]
            code, _, errors = run(words, prefix)
            alive = worker.poll() is None
            return {**describe(python, code, errors, trace), "alive": alive}
        finally:
            worker.kill()


def main():
    python, folder, *prefix = sys.argv[1:]
    print(
        json.dumps(
            {
                "run": record(python, folder, prefix, "run.vst"),
                "copied": record(python, folder, prefix, "copied.vst", "--storage", "copied"),
                "attach": attach(python, folder, prefix, listens=False),
                "listen": attach(python, folder, prefix, listens=True),
            }
        )
    )


main()
