"""A command on a terminal that stays open: tests press keys and wait for output. No test depends on the machine's
speed: only a text that does not appear within minutes is a failure.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from on_terminal import PLAIN

PATIENCE = 240  # seconds


class LiveTerminal:
    def __init__(self, command, columns=100, rows=30, **env):
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        env = {**PLAIN, "TERM": "xterm", **env}
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.seen = ""  # output since the last key

    def resize(self, columns, rows):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        self.seen = ""
        os.write(self._master, keys.encode())

    def wait_for(self, text):
        """Waits until the text was written since the last key, and returns the output since then."""
        until = time.monotonic() + PATIENCE
        while text not in self.seen and time.monotonic() < until and self._read():
            pass
        assert text in self.seen, f"{text!r} did not come but {self.seen[-2000:]!r}"
        return self.seen

    def end(self):
        """Waits for the end of the process; returns the remaining output and the exit code."""
        while self._read():
            pass
        os.close(self._master)
        return self.seen, self.process.wait(PATIENCE)

    def _read(self):
        """Reads some output; returns False at the end."""
        if not select.select([self._master], [], [], 1)[0]:
            return True
        try:
            part = os.read(self._master, 65536)
        except OSError:
            return False
        self.seen += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)
