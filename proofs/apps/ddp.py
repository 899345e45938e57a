"""The program that torchrun starts: two ranks that train one model with gloo."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 4) * (dist.get_rank() + 1)).pow(2).mean()
    loss.backward()
    optimizer.step()
total = torch.tensor([loss.item()])
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(round(total.item(), 5))
dist.barrier()
dist.destroy_process_group()
