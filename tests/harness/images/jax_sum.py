"""Every process puts in its rank and one; each prints the sum that all of them have got."""

import os

import jax
from jax.experimental.multihost_utils import process_allgather

jax.distributed.initialize(
    f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}",
    num_processes=int(os.environ["NUM_PROCESSES"]),
    process_id=int(os.environ["PROCESS_ID"]),
)
rank, size = jax.process_index(), jax.process_count()
total = process_allgather(jax.numpy.array([rank + 1.0])).sum()
print(f"rank {rank} of {size} on {os.uname().nodename}: sum {total}", flush=True)
