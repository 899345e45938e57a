"""Events, averages and lists of them that are torch's own classes, too: isinstance() says so, and what torch gives them
beyond ours they have. Loaded only where torch is.
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
        """The tree of calls is there already."""


class LazyEvents(event_list.LazyEvents, EventList):
    pass
