"""What a function gives with torch's own names and what it gives with ours, in one process."""

import vestige


def beside(function):
    """Calls it twice: (torch's, ours)."""
    import torch

    theirs = function()
    vestige.install()
    try:
        assert torch.profiler.record_function is vestige.record_function
        return theirs, function()
    finally:
        vestige.uninstall()
