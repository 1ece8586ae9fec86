"""Every process puts in its rank and one; each prints the sum that all of them have got."""

import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, size = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync


def add_up():
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(rank + 1.0))


total = tf.function(lambda: strategy.run(add_up))()
print(f"rank {rank} of {size} on {os.uname().nodename}: sum {total.numpy()}", flush=True)
