"""A Python that a recorded program starts runs this file first, instead of the sitecustomize that it would have run.
The recorded program puts this folder at the front of PYTHONPATH. This module takes the folder out of sys.path again
and loads the next sitecustomize, as if this one did not exist. If this is the Python that vestige was built for, it
starts recording before the program runs. Any Python may load this file, even an old one: it uses only sys and os, and
its failures are silent.
"""

import os
import sys


def _find_follower():
    """Returns the function that starts recording, and its argument. Returns None if nobody records, or if this is
    another Python.
    """
    text = os.environ.get("VESTIGE_CHILDREN", "")
    implementation = getattr(sys, "implementation", None)
    tag = "%s%s" % (getattr(implementation, "cache_tag", ""), getattr(sys, "abiflags", ""))  # noqa: UP031
    if not text.startswith('{"abi": "%s", ' % tag) or sys.flags.ignore_environment:  # noqa: UP031
        return None
    package = os.path.dirname(_folder)

    class Finder:
        """Finds vestige where the recorded program has it, be it installed here or not."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "vestige":
                return None
            finder = sys.modules["_frozen_importlib_external"].PathFinder  # importlib itself may not be loaded
            return finder.find_spec(name, [os.path.dirname(package)])

    sys.meta_path.insert(0, Finder)
    try:
        from vestige.recording import children
    finally:
        sys.meta_path.remove(Finder)
    return children.start, text


def _follow():
    try:
        found = _find_follower()
        if found:
            found[0](found[1])
    except Exception:
        pass


def _follow_after_site():
    """Where the user has a folder of packages, site still runs usercustomize after us. Recording starts after that:
    those calls are not the program's.
    """
    site = sys.modules.get("site")
    last = getattr(site, "execusercustomize", None)
    if not (last and getattr(site, "ENABLE_USER_SITE", False)):
        _follow()
        return

    def execusercustomize():
        site.execusercustomize = last  # type: ignore[union-attr]
        try:
            last()
        finally:
            _follow()

    site.execusercustomize = execusercustomize  # type: ignore[union-attr]


_folder = os.path.dirname(__file__)
if _folder in sys.path:
    sys.path.remove(_folder)
sys.path_importer_cache.pop(_folder, None)
_self = sys.modules.pop("sitecustomize", None)  # Python 2 would clear a module that nobody refers to
try:
    import sitecustomize  # noqa: F401
finally:
    if "VESTIGE_CHILDREN" in os.environ:
        _follow_after_site()
