"""A function that torch compiles, with an empty cache in a new folder."""

import torch

torch.set_num_threads(1)
torch.manual_seed(0)


@torch.compile
def smooth(x):
    return torch.sin(x) * torch.cos(x) + x.relu()


with torch.profiler.record_function("compiled"):
    print(round(smooth(torch.arange(64.0)).sum().item(), 3))
