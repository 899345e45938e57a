"""The old import path of vestige.torch.steps, for programs and pickles that use it."""

from .torch.steps import KinetoStepTracker, ProfilerAction, schedule

__all__ = ["KinetoStepTracker", "ProfilerAction", "schedule"]
