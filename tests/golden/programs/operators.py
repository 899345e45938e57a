"""A step of training, with shapes, memory, modules, stacks and storages: as the first argument, the trace to write."""

import sys

import torch

import vestige
from vestige import record_function

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch, wanted = torch.randn(3, 4), torch.randn(3, 2)


def step():
    with record_function("## forward ##"):
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


step()
with vestige.profile(
    output=sys.argv[1],
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
    with_flops=True,
    with_modules=True,
    include=["operators.py"],
    c_functions=False,
    gc=False,
):
    step()
