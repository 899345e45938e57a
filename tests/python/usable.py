"""The engines that record on this Python; a debug build has an engine that does not."""

from vestige import _core


def usable_engines():
    trouble = _core.engine_choices()
    return [engine for engine in _core.engines if trouble[engine] is None]
