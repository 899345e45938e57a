"""A training by Hugging Face's accelerate, which records with a profiler that it takes for torch.profiler.

python accelerate_fit.py FOLDER
"""

import sys
import warnings

import vestige

vestige.install()

import torch
from accelerate import Accelerator, ProfileKwargs

STEPS = 5


def main(folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = ProfileKwargs(
        activities=["cpu"],
        record_shapes=True,
        schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        output_trace_dir=folder,
    )
    accelerator = Accelerator(cpu=True, kwargs_handlers=[wanted])
    model = torch.nn.Linear(4, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with accelerator.profile() as prof:
        for _ in range(STEPS):
            optimizer.zero_grad()
            accelerator.backward(model(torch.ones(3, 4)).sum())
            optimizer.step()
            prof.step()
    assert type(prof).__module__.startswith("vestige.")


if __name__ == "__main__":
    main(sys.argv[1])
