"""The names of vestige.torch.events under their first address, for programs and pickles that have it."""

from .torch.events import FunctionEvent, Interval

__all__ = ["FunctionEvent", "Interval"]
