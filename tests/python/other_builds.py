"""Tests that cannot run on an unusual Python: other_builds.txt lists tests or whole files, and says where they cannot
run and why.
"""

import os
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from emulated import IS_EMULATED

LIST = Path(__file__).with_name("other_builds.txt")
HERE = {
    "debug": hasattr(sys, "gettotalrefcount"),  # a debug build
    "dev": sys.flags.dev_mode,  # -X dev
    "malloc": os.environ.get("PYTHONMALLOC") == "debug",
    "nogil": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),  # a build without the GIL
    "engine": "VESTIGE_ENGINE" in os.environ,
    "emulated": IS_EMULATED,  # another processor, emulated by qemu
}

TURBO_REFUSES = {
    (True, False): "turbo refuses debug builds",
    (False, True): "turbo refuses builds without the GIL",
    (True, True): "turbo refuses debug builds, and builds without the GIL",
}
NO_PARAMETERS = SimpleNamespace(params={})


def listed():
    """Returns {test: reason} for the tests that cannot run here. In the file, a line above the names says where and
    why.
    """
    reasons, reason = {}, None
    for line in LIST.read_text().splitlines():
        if line.startswith("# "):
            places, reason = line.removeprefix("# ").split(": ", 1)
            counts = any(HERE[place] for place in places.split())
        elif line and counts:
            reasons[line] = reason
    return reasons


def skip_what_cannot_run_here(items):
    reasons = listed()
    for item in items:
        file = item.path.name
        names = f"{file}::{item.name}", f"{file}::{getattr(item, 'originalname', item.name)}", file
        reason = next((reasons[name] for name in names if name in reasons), None)
        if "turbo" in getattr(item, "callspec", NO_PARAMETERS).params.values():
            reason = TURBO_REFUSES.get((HERE["debug"], HERE["nogil"]), reason)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
