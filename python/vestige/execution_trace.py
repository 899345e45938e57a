"""The old import path of vestige.torch.execution_trace, for programs and pickles that use it."""

from .torch.execution_trace import ExecutionTraceObserver

__all__ = ["ExecutionTraceObserver"]
