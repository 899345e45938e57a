"""More patience under emulation, where VESTIGE_EMULATED is set: processes take far longer there."""

import os
import subprocess

IS_EMULATED = bool(os.environ.get("VESTIGE_EMULATED"))
LONGER = 20

wait, communicate = subprocess.Popen.wait, subprocess.Popen.communicate


def be_patient():
    """Gives every process that a test waits for more time, and changes nothing else."""
    if IS_EMULATED:
        subprocess.Popen.wait = wait_longer
        subprocess.Popen.communicate = communicate_longer


def wait_longer(self, timeout=None):
    return wait(self, timeout and timeout * LONGER)


def communicate_longer(self, input=None, timeout=None):
    return communicate(self, input, timeout and timeout * LONGER)
