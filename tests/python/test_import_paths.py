"""Every module of the package can be imported first."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.any_python

# Loaded only if torch is installed.
WITH_TORCH = [
    f"vestige.torch.{name}"
    for name in ("inherited", "profiles", "tree", "tree_autograd", "tree_devices", "tree_fields")
]

IMPORT_EACH = """
import os, pkgutil, sys, vestige
found = [each.name for each in pkgutil.walk_packages(vestige.__path__, "vestige.")]
names = [name for name in found if "__main__" not in name and ".libvestige" not in name]  # that is a library in C
for name in names:
    if os.fork() == 0:
        try:
            __import__(name)
        except BaseException as error:
            if name not in sys.argv or getattr(error, "name", "") != "torch":
                print(name, repr(error), flush=True)
        os._exit(0)
    os.wait()
print(len(names))
"""


def test_every_module_can_be_imported_first():
    """No module needs another module to be loaded first."""
    result = subprocess.run([sys.executable, "-c", IMPORT_EACH, *WITH_TORCH], capture_output=True, text=True)
    assert (result.stderr, result.stdout.count("\n")) == ("", 1), result.stdout
    assert int(result.stdout) > 100
