"""Runs a command on a terminal of a given width and returns its output."""

import os
import pty
import subprocess

PLAIN = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR")}


def on_terminal(command, columns=None, cwd=None, code=0, **env):
    """Returns stdout and stderr together, as written, without the carriage returns that the terminal adds."""
    master, slave = pty.openpty()
    env = {**PLAIN, "TERM": "xterm", **({"COLUMNS": str(columns)} if columns else {}), **env}
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdout=slave, stderr=slave, stdin=slave, env=env, cwd=cwd)
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(master)
    assert process.wait() == code
    return seen.decode().replace("\r\n", "\n")
