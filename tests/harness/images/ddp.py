"""Every process puts in its rank and one, and learns one weight from it; each prints the sum that all of them have got, and
the gradient, which is the mean of all."""

import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
rank, size = distributed.get_rank(), distributed.get_world_size()
mine = torch.tensor([rank + 1.0])
model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(mine).sum().backward()
gradient = next(model.parameters()).grad.item()
distributed.all_reduce(mine)
print(f"rank {rank} of {size} on {os.uname().nodename}: sum {mine.item()} gradient {gradient}", flush=True)
