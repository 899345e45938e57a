"""The names of vestige.torch.experimental under their first address, for programs and pickles that have it."""

from .torch.experimental import _ExperimentalConfig

__all__ = ["_ExperimentalConfig"]
