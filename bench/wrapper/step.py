"""Training steps of a network of bench/peers/networks_torch.py, one per line that comes in: an ordinary PyTorch program.

usage: step.py NETWORK INPUT BATCH THREADS LAYOUT GRADIENTS.pt
Prints the seconds of each step. At the line "end" it computes outputs and gradients from the first weights into the file
and prints the peak of its memory.
"""

import pathlib
import resource
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

import networks_torch


def main():
    name, extents, batch, threads, layout, path = sys.argv[1:]
    sample, batch = tuple(map(int, extents.split("x"))), int(batch)
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    orders = {"channels-last": torch.channels_last_3d if len(sample) == 4 else torch.channels_last}
    order = orders.get(layout, torch.contiguous_format)
    network = networks_torch.make(name, sample).to(memory_format=order).train()
    first = {key: value.clone() for key, value in network.state_dict().items()}
    src = torch.randn(batch, *sample).contiguous(memory_format=order)
    target = networks_torch.random_target(name, batch, sample)
    loss_function = networks_torch.loss_of(name)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)

    def backward():
        optimizer.zero_grad(set_to_none=True)
        dst = network(src)
        loss_function(dst, target).backward()
        return dst

    while (line := sys.stdin.readline().strip()) != "end":
        if not line:
            return  # the measurement was stopped
        start = time.perf_counter()
        backward()
        optimizer.step()
        print(time.perf_counter() - start, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    network.load_state_dict(first)
    torch.manual_seed(2)
    dst = backward()
    torch.save({"output": dst.detach(), **{key: value.grad for key, value in network.named_parameters()}}, path)
    print(peak, flush=True)


main()
