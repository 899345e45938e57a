"""Runs one function of these modules in a fresh interpreter, so that nothing that was loaded, allocated or patched
before can change its result.

    python child.py MODULE FUNCTION JSON      prints the function's result as a last line of JSON
"""

import gc
import importlib
import json
import os
import subprocess
import sys


def run(function, **arguments):
    """Calls function(**arguments) in a new process and returns its result."""
    module = os.path.splitext(os.path.basename(function.__code__.co_filename))[0]
    command = [sys.executable, __file__, module, function.__name__, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{function.__name__}({arguments}) failed with {done.returncode}:\n{done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])


def memory_mib(field="VmRSS"):
    """Returns the process's memory, file mappings included: now (VmRSS), or at its peak (VmHWM)."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    raise LookupError(field)


def forget_memory_peak():
    """Resets VmHWM; returns the memory in use now."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    return memory_mib()


def main():
    module, function, arguments = sys.argv[1:]
    result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
