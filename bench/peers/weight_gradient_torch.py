"""The weight gradient of one convolution as PyTorch calls oneDNN for it, channels-last and channels-first."""

import argparse
import json
import time

import torch


def seconds(order, args):
    """The best of several runs."""
    size = [args.size] * 3
    src = torch.randn(1, args.channels, *size).contiguous(memory_format=order)
    diff = torch.randn(1, args.filters, *size).contiguous(memory_format=order)
    weights = torch.randn(args.filters, args.channels, 3, 3, 3).contiguous(memory_format=order)
    best = float("inf")
    for _ in range(args.rounds):
        start = time.perf_counter()
        torch.ops.aten.convolution_backward(diff, src, weights, None, [1] * 3, [1] * 3, [1] * 3, False, [0] * 3, 1,
                                            [False, True, False])
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--filters", type=int, default=16)
    parser.add_argument("--size", type=int, default=128, help="cells per dim")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(json.dumps({"channels_last": seconds(torch.channels_last_3d, args),
                      "channels_first": seconds(torch.contiguous_format, args)}))


main()
