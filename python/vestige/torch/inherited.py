"""Subclasses of our events, averages and lists that also inherit from torch's classes, for isinstance() and for torch's
further methods. Loaded only if torch is.
"""

from __future__ import annotations

from torch.autograd import profiler_util

from . import averages, device_events, event_list, events


class FunctionEvent(events.FunctionEvent, profiler_util.FunctionEvent):  # type: ignore[misc]
    __slots__ = ()


class DeviceEvent(device_events.DeviceEvent, FunctionEvent):
    __slots__ = ()


class FunctionEventAvg(averages.FunctionEventAvg, profiler_util.FunctionEventAvg):  # type: ignore[misc]
    pass


class EventList(event_list.EventList, profiler_util.EventList):  # type: ignore[misc]
    _tree_built = True

    def _build_tree(self) -> None:
        """Does nothing, because the tree of calls exists already."""


class LazyEvents(event_list.LazyEvents, EventList):
    pass
