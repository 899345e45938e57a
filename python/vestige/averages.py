"""The names of vestige.torch.averages under their first address, for programs and pickles that have it."""

from .torch.averages import FunctionEventAvg

__all__ = ["FunctionEventAvg"]
