"""Runs programs beside this file whose records versions after 0.1.0 brought, and leaves their traces in the folder that
is the first argument."""

import subprocess
import sys

out = sys.argv[1]


def vestige(*words):
    subprocess.run([sys.executable, "-m", "vestige", *words], check=True)


vestige("run", "-q", "--sched", "-o", f"{out}/sched.vst", "--include", "sched.py", "sched.py")
