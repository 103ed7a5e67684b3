"""What the two peers' programs share: arguments, timing, peak memory, one line of JSON."""

import argparse
import json
import resource
import statistics
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--input", required=True, type=lambda text: tuple(int(n) for n in text.split("x")))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    return parser.parse_args()


def report(step, args, version, parameters):
    """Times args.steps calls of `step`, which returns the loss, after one or two calls to warm up."""
    start = time.perf_counter()
    loss = step()
    if time.perf_counter() - start < 15:
        loss = step()
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({
        "version": version,
        "parameters": parameters,
        "loss": loss,
        "seconds_best": min(seconds),
        "seconds_median": statistics.median(seconds),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))
