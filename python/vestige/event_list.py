"""The names of vestige.torch.event_list under their first address, for programs and pickles that have it."""

from .torch.event_list import EventList

__all__ = ["EventList"]
