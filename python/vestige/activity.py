"""The old import path of vestige.torch.activity, for programs and pickles that use it."""

from .torch.activity import ProfilerActivity, supported_activities

__all__ = ["ProfilerActivity", "supported_activities"]
