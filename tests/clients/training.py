"""One rank of a training on two, profiled twice: by torch's own profiler, then by ours in its place. Each profiler's
tensorboard_trace_handler writes into a separate folder; the execution trace goes to FOLDER/torch.RANK.et.json.

    python training.py RANK FOLDER
"""

import os
import sys
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import vestige

WAIT, WARMUP, ACTIVE = 1, 1, 3
STEPS = WAIT + WARMUP + ACTIVE + 1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.inner(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


def train(rank, folder):
    """Profiles like a program written for torch, which does not know whose profiler it uses."""
    from torch.profiler import (
        ExecutionTraceObserver,
        ProfilerActivity,
        profile,
        record_function,
        schedule,
        tensorboard_trace_handler,
    )

    torch.manual_seed(0)
    net = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = DataLoader([(torch.ones(8), torch.ones(1))] * (4 * STEPS), batch_size=4)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
        on_trace_ready=tensorboard_trace_handler(folder, worker_name=f"worker{rank}"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
        execution_trace_observer=ExecutionTraceObserver().register_callback(f"{folder}.{rank}.et.json"),
    ) as prof:
        for x, y in batches:
            with record_function("## forward ##"):
                loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            with record_function("## backward ##"):
                loss.backward()
            optimizer.step()
            time.sleep(0.05)  # gloo's thread ends its span some time after the other threads continue
            prof.step()


def main(rank, folder):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    train(rank, os.path.join(folder, "torch"))
    vestige.install()
    train(rank, os.path.join(folder, "vestige"))
    wait_for_all(rank, folder)
    os._exit(0)  # gloo's threads sometimes abort a process that ends


def wait_for_all(rank, folder):
    """Waits until every rank has got here. Does not use gloo's barrier: the first rank to leave the barrier and end
    closes its connection, which ranks that still wake up in the barrier report as an error.
    """
    open(os.path.join(folder, f"ended.{rank}"), "w").close()
    while not all(os.path.exists(os.path.join(folder, f"ended.{other}")) for other in range(2)):
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
