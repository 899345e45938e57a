"""The names of vestige.torch.execution_trace under their first address, for programs and pickles that have it."""

from .torch.execution_trace import ExecutionTraceObserver

__all__ = ["ExecutionTraceObserver"]
