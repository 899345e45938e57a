"""Runs the programs beside this file and leaves their traces in the folder that is the first argument."""

import os
import shutil
import subprocess
import sys

out = sys.argv[1]


def vestige(*words, code=0):
    done = subprocess.run([sys.executable, "-m", "vestige", *words])
    assert done.returncode == code, (words, done.returncode)


def python(program, name):
    subprocess.run([sys.executable, program, f"{out}/{name}.vst"], check=True)


vestige("run", "-q", "-o", f"{out}/plain.vst", "--record-args", "weigh", "plain.py")
vestige("run", "-q", "-o", f"{out}/threads.vst", "--include", "threads.py", "threads.py")
vestige("run", "-q", "-o", f"{out}/bounded.vst", "--max-size", "1M", "bounded.py")
vestige("run", "-q", "-o", f"{out}/torn.vst", "torn.py", code=-9)
vestige("run", "-q", "-o", f"{out}/short.vst", "--min-duration", "1ms", "short.py")
os.makedirs(f"{out}/family")
vestige("run", "-q", "-o", f"{out}/family/family.vst", "--include", "family.py", "--include", "<string>", "family.py")
vestige("memory", "-q", "-o", f"{out}/memory.vst", "memory.py")
vestige("memory", "-q", "--native", "-o", f"{out}/memory_native.vst", "memory.py")
python("windows.py", "windows")
python("operators.py", "operators")
python("graph.py", "graph")
shutil.copy(f"{out}/plain.vst", f"{out}/packed.vst")
vestige("pack", f"{out}/packed.vst")

# Half a chunk of records and all behind it missing, as a full disk or an interrupted copy leaves it; and a chunk's head damaged.
with open(f"{out}/threads.vst", "rb") as file:
    whole = file.read()
chunks = [at for at in range(4096, len(whole), 4096) if whole[at : at + 4] == b"chnk"]
with open(f"{out}/cut.vst", "wb") as file:
    file.write(whole[: chunks[1] + 1024])
with open(f"{out}/damaged.vst", "wb") as file:
    file.write(whole[: chunks[-1] + 8] + b"\xff" + whole[chunks[-1] + 9 :])
