"""The old import path of vestige.torch.averages, for programs and pickles that use it."""

from .torch.averages import FunctionEventAvg

__all__ = ["FunctionEventAvg"]
