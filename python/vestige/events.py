"""The old import path of vestige.torch.events, for programs and pickles that use it."""

from .torch.events import FunctionEvent
from .torch.interval import Interval

__all__ = ["FunctionEvent", "Interval"]
