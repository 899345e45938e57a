"""Runs the programs beside this file that record_all.py does not run, and leaves their traces in the folder that is the
first argument."""

import subprocess
import sys

out = sys.argv[1]


def vestige(*words):
    subprocess.run([sys.executable, "-m", "vestige", *words], check=True)


vestige("run", "-q", "--sched", "-o", f"{out}/sched.vst", "--include", "sched.py", "sched.py")
vestige("run", "-q", "-o", f"{out}/lines.vst", "--include", "lines.py", "lines.py")
