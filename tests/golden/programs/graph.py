"""An execution trace of a few operators, with their timeline: as the first argument, the trace to write."""

import sys
import tempfile

import torch

from vestige import ExecutionTraceObserver, profile, record_function

torch.manual_seed(0)
torch.set_num_threads(1)
weights = torch.randn(2, 3, requires_grad=True)


def step():
    with record_function("## step ##"):
        product = torch.mm(weights, torch.ones(3, 2))
        torch.cat([product, product.relu()], dim=1).sum().backward()


step()
with tempfile.NamedTemporaryFile(suffix=".json") as document:
    observer = ExecutionTraceObserver().register_callback(document.name)
    with profile(output=sys.argv[1], with_stack=False, execution_trace_observer=observer):
        step()
