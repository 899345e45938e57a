#!/usr/bin/env python3
"""Makes the sdist from the committed files, as pip would, in a folder; run by a Python with the build tools."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Meson needs nothing except the project's files, but it sets up a build directory for the sdist.
BUILD = "import sys, mesonpy; mesonpy.build_sdist(sys.argv[1], {'setup-args': ['-Dpython=false', '-Dlibrary=true']})"


def main():
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".sdist-") as work:
        done = subprocess.run([sys.executable, "-c", BUILD, work], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(done.stdout.decode(errors="replace"))
        (made,) = Path(work).glob("*.tar.gz")
        size = made.stat().st_size
        os.replace(made, folder / made.name)
    print(f"{folder.name}/{made.name} ({size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
