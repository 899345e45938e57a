"""The names of vestige.torch.activity under their first address, for programs and pickles that have it."""

from .torch.activity import ProfilerActivity, supported_activities

__all__ = ["ProfilerActivity", "supported_activities"]
