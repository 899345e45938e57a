"""A FUSE file system that stalls, fails or loses data on request: `python slow_disk.py FOLDER BACKING MOOD`.

FOLDER is where it is mounted, and BACKING the folder that has its files. MOOD is a file with one word and a number,
which every operation reads:

    fine            everything works
    stall 10        operations of files take 10 s, then work for a second
    fail 28         writing fails with this errno value
    truncate 65536  every second write cuts the file to this size
"""

import os
import sys
import threading
import time

import mfusepy

STAT = ("st_mode", "st_size", "st_nlink", "st_uid", "st_gid", "st_mtime", "st_atime", "st_ctime")


class SlowDisk(mfusepy.Operations):
    use_ns = True

    def __init__(self, backing, mood):
        self.backing, self.mood = backing, mood
        self.stalling = threading.Lock()
        self.writes = 0
        self.worked_until = 0.0  # stalls at once when it is to stall

    def at(self, path):
        return self.backing + path

    def feel(self):
        """Waits if the disk stalls; returns the mood."""
        with open(self.mood) as file:
            word, _, number = file.read().strip().partition(" ")
        if word != "stall":
            self.worked_until = 0.0
            return word, int(number or 0)
        with self.stalling:  # whoever comes while the disk stalls waits until the end
            if time.monotonic() - self.worked_until > 1:
                time.sleep(float(number))
                self.worked_until = time.monotonic()
        return "fine", 0

    def change(self, path):
        word, number = self.feel()
        if word == "fail":
            raise mfusepy.FuseOSError(number)
        return word, number

    def getattr(self, path, fh=None):
        self.feel()
        try:
            found = os.lstat(self.at(path))
        except OSError as error:
            raise mfusepy.FuseOSError(error.errno) from None
        return {key: int(getattr(found, key)) * (10**9 if key.endswith("time") else 1) for key in STAT}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.at(path))]

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def create(self, path, mode, fi=None):
        self.change(path)
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path, flags):
        self.feel()
        return os.open(self.at(path), os.O_RDWR)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        word, number = self.change(path)
        done = os.pwrite(fh, data, offset)
        self.writes += 1
        if word == "truncate" and self.writes % 2 == 0 and os.fstat(fh).st_size > number:
            os.ftruncate(fh, number)
        return done

    def truncate(self, path, length, fh=None):
        self.change(path)
        os.truncate(self.at(path), length)

    def fsync(self, path, datasync, fh):
        self.change(path)

    def release(self, path, fh):
        os.close(fh)

    def unlink(self, path):
        self.change(path)
        os.unlink(self.at(path))

    def rename(self, old, new, flags=0):
        os.rename(self.at(old), self.at(new))

    def statfs(self, path):
        found = os.statvfs(self.backing)
        return {key: getattr(found, key) for key in ("f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_frsize")}


if __name__ == "__main__":
    folder, backing, mood = map(os.path.abspath, sys.argv[1:])
    # attributes are not kept, so that a file that was cut shows it
    mfusepy.FUSE(SlowDisk(backing, mood), folder, foreground=True, nothreads=False, attr_timeout=0, entry_timeout=0)
