"""The old import path of vestige.torch.event_list, for programs and pickles that use it."""

from .torch.event_list import EventList

__all__ = ["EventList"]
