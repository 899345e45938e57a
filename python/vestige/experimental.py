"""The old import path of vestige.torch.experimental, for programs and pickles that use it."""

from .torch.experimental import _ExperimentalConfig

__all__ = ["_ExperimentalConfig"]
