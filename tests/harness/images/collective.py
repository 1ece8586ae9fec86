"""Every process puts in its rank and one; each prints the sum that all of them have got."""

import os

import paddle
from paddle import distributed

distributed.init_parallel_env()
rank, size = distributed.get_rank(), distributed.get_world_size()
mine = paddle.to_tensor([rank + 1.0])
distributed.all_reduce(mine)
print(f"rank {rank} of {size} on {os.uname().nodename}: sum {mine.item()}", flush=True)
