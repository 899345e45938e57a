"""Python loads this file in every process of run.py, including children of tests. It puts vestige in the place of
torch.profiler, and counts recordings by the length of the file that VESTIGE_SUITE_RECORDINGS names. With
VESTIGE_SUITE_ENGINE=torch, nothing is installed, and torch's own profiler is tested.
"""

import json
import os


def counted(record):
    def count(*given):
        with open(os.environ["VESTIGE_SUITE_RECORDINGS"], "a") as file:
            file.write(".")
        return record(*given)

    return count


if os.environ.get("VESTIGE_SUITE_ENGINE", "torch") != "torch":
    import vestige
    from vestige.torch import hosting
    from vestige.torch.execution_trace import ExecutionTraceObserver

    hosting.begin = counted(hosting.begin)  # methods of a profile
    ExecutionTraceObserver._record_alone = counted(ExecutionTraceObserver._record_alone)
    vestige.install(**json.loads(os.environ["VESTIGE_SUITE_INSTALL"]))
