"""Runs a program and tells, as the last line of stderr, how many bytes its extension modules took as they were loaded:
what constructors of their libraries allocated, before anybody could see them call malloc.

    python loading.py program.py
"""

import _imp
import ctypes
import os
import runpy
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from resident import read_mappings

taken = 0
create = _imp.create_dynamic


def create_dynamic(spec, file=None):
    """Loads the library before the module is made from it: this part can be measured."""
    global taken
    before = read_mappings(os.getpid()).others
    try:
        ctypes.CDLL(spec.origin)
    except OSError:
        pass
    taken += max(0, read_mappings(os.getpid()).others - before)
    return create(spec) if file is None else create(spec, file)


_imp.create_dynamic = create_dynamic
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(taken, file=sys.stderr)
