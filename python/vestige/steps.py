"""The names of vestige.torch.steps under their first address, for programs and pickles that have it."""

from .torch.steps import KinetoStepTracker, ProfilerAction, schedule

__all__ = ["KinetoStepTracker", "ProfilerAction", "schedule"]
