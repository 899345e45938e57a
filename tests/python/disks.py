"""Disks for tests: a FUSE file system that stalls or fails on request (slow_disk.py), mounted in a folder."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TIMEOUT_S = 120


class NoDisk(Exception):
    """The message says why no disk can be mounted here."""


class Disk:
    """`folder` is on the disk; its files are in `backing`. With `upper`, an overlay can write to the disk."""

    def __init__(self, place, python=sys.executable, *, upper=False):
        self.mount, self.backing, self.mood = place / "disk", place / "backing", place / "mood"
        for folder in (self.mount, self.backing, self.backing / "runs"):
            folder.mkdir(parents=True)
        self.feel("fine")
        found = subprocess.run([ROOT / "scripts" / "libfuse.sh"], capture_output=True, text=True)
        if found.returncode != 0:
            raise NoDisk(f"no libfuse: {found.stderr.strip()}")
        environment = {**os.environ, "FUSE_LIBRARY_PATH": found.stdout.strip()}
        self._log = open(place / "disk.log", "w+")
        words = [python, HERE / "slow_disk.py", self.mount, self.backing, self.mood, *["upper"] * upper]
        self._server = subprocess.Popen(words, env=environment, stdout=self._log, stderr=self._log)
        self.server = self._server.pid
        self._await_mount()
        # a folder below the mount, as users have it: to find the folder, the kernel asks the disk
        self.folder = self.mount / "runs"

    def _await_mount(self):
        until = time.monotonic() + TIMEOUT_S
        while not os.path.ismount(self.mount):
            if self._server.poll() is not None or time.monotonic() > until:
                self._log.seek(0)
                raise NoDisk(f"no FUSE: {self._log.read().strip()[-300:]}")
            time.sleep(0.02)

    def feel(self, mood):
        """Sets the mood: see slow_disk.py."""
        new = self.mood.with_suffix(".new")
        new.write_text(mood)
        new.rename(self.mood)

    def read(self, name):
        """The bytes of a file of the disk, which is not asked."""
        return (self.backing / "runs" / name).read_bytes()

    def at_rest(self, name):
        """The path of a file of the disk, past the disk."""
        return self.backing / "runs" / name

    def unmount(self):
        """Pulls the disk out while files are open."""
        subprocess.run(["umount", "-l", self.mount], capture_output=True)
        self._server.kill()
        self._server.wait()

    @contextlib.contextmanager
    def overlay(self, folder):
        """Mounts an overlay on the folder that writes to this disk."""
        upper, work, lower = self.folder / "upper", self.folder / "work", folder.with_name("lower")
        for made in (upper, work, lower, folder):
            made.mkdir()
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        words = ["mount", "-t", "overlay", "overlay", "-o", options, folder]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise NoDisk(f"no overlay on FUSE: {done.stderr.strip()}")
        try:
            yield
        finally:
            self.feel("fine")
            subprocess.run(["umount", "-l", folder], check=True)

    def close(self):
        self.feel("fine")
        self.unmount()
        self._log.close()
