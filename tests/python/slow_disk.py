"""A FUSE file system that stalls, fails or loses data on request: `python slow_disk.py FOLDER BACKING MOOD [upper]`.

FOLDER is where it is mounted, and BACKING the folder that has its files. With `upper`, an overlay can write to it. MOOD
is a file with one word and a number, which every operation reads:

    fine            everything works
    stall 10        operations of files take 10 s, then work for a second
    fail 28         writing fails with this errno value
    truncate 65536  every second write cuts the file to this size
"""

import os
import stat
import sys
import threading
import time

import mfusepy

RENAME_WHITEOUT = 4
STAT = ("st_mode", "st_size", "st_nlink", "st_uid", "st_gid", "st_mtime", "st_atime", "st_ctime", "st_rdev")


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
        with os.scandir(self.at(path)) as entries:
            found = [(entry.name, {"st_mode": entry.stat(follow_symlinks=False).st_mode}, 0) for entry in entries]
        return [".", "..", *found]

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

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

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def statfs(self, path):
        found = os.statvfs(self.backing)
        return {key: getattr(found, key) for key in ("f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_frsize")}


class UpperDisk(SlowDisk):
    """A disk that an overlay can write to: the kernel asks for special files and extended attributes."""

    def mknod(self, path, mode, dev):
        os.mknod(self.at(path), mode, dev)

    def setxattr(self, path, name, value, options, position=0):
        os.setxattr(self.at(path), name, value, options)

    def getxattr(self, path, name, position=0):
        try:
            return os.getxattr(self.at(path), name)
        except OSError as error:
            raise mfusepy.FuseOSError(error.errno) from None

    def removexattr(self, path, name):
        os.removexattr(self.at(path), name)

    def listxattr(self, path):
        return os.listxattr(self.at(path))

    def chmod(self, path, mode, fh=None):
        os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid, fh=None):
        os.chown(self.at(path), uid, gid)

    def utimens(self, path, times=None, fh=None):
        os.utime(self.at(path), ns=times)


class Mount(mfusepy.FUSE):
    """Renames with flags, which an overlay needs, and mfusepy leaves out."""

    def rename_fuse_3(self, old, new, flags):
        self.rename_fuse_2(old, new)
        if flags & RENAME_WHITEOUT:
            os.mknod(self.operations.at(old.decode()), stat.S_IFCHR, 0)
        return 0


if __name__ == "__main__":
    folder, backing, mood = map(os.path.abspath, sys.argv[1:4])
    kind = UpperDisk if sys.argv[4:] else SlowDisk
    # attributes are not kept, so that a file that was cut shows it
    Mount(kind(backing, mood), folder, foreground=True, nothreads=False, attr_timeout=0, entry_timeout=0)
