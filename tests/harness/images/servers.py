"""Learns a number for each of eight words by parameter servers, which keep them. Each trainer is taught its share of the
words, and prints its loss over all of them before the training, and after that of all trainers."""

import os

import numpy
import paddle
from paddle.distributed import fleet

STEPS = 300
WORDS = numpy.arange(8, dtype="int64").reshape(8, 1)

paddle.enable_static()
fleet.init(is_collective=False)
word = paddle.static.data("word", [None, 1], "int64")
wanted = paddle.static.data("wanted", [None, 1], "float32")
learnt = paddle.reshape(paddle.static.nn.sparse_embedding(word, [8, 1]), [-1, 1])
loss = paddle.mean(paddle.nn.functional.square_error_cost(learnt, wanted))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.SGD(0.5), strategy).minimize(loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    print("server", fleet.server_index(), "of", fleet.server_num(), "is done", flush=True)
else:
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()

    def run(words):
        feed = {"word": words, "wanted": (words + 1).astype("float32")}
        return float(executor.run(feed=feed, fetch_list=[loss])[0])

    mine = WORDS[fleet.worker_index() :: fleet.worker_num()]
    losses = [run(WORDS)]
    for _ in range(STEPS):
        run(mine)
    fleet.barrier_worker()
    losses += [run(WORDS)]
    fleet.barrier_worker()
    if fleet.is_first_worker():
        # Nothing else ends the servers.
        fleet.fleet._runtime_handle._worker.stop_server()
    fleet.stop_worker()
    here = f"trainer {fleet.worker_index()} of {fleet.worker_num()} on {os.uname().nodename}"
    print(f"{here}: loss {losses[0]:.4f} to {losses[1]:.4f}", flush=True)
