"""Every process adds up one of each again and again, until the first sees that there is /gate/open."""

import os
import time

import torch
from torch import distributed

distributed.init_process_group("gloo")
rank, size = distributed.get_rank(), distributed.get_world_size()
print(f"rank {rank} of {size} on {os.uname().nodename}", flush=True)
while True:
    sums = torch.tensor([1.0, float(rank == 0 and os.path.exists("/gate/open"))])
    distributed.all_reduce(sums)
    if sums[1] > 0:
        break
    time.sleep(0.1)
print(f"rank {rank} of {size} is done: sum {sums[0].item()}", flush=True)
