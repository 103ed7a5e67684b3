"""Measures a training step of Orthant and of its peers in one run, and prints who takes how long.

Every measurement is a process of its own. The programs take turns, round after round, so that a slow minute of the
machine hits all of them; the best step of all rounds counts.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

OURS = "orthant"
# Steps per round; the strongest peer's time must be at least `goal` times ours.
CASES = [
    {"model": "cosmoflow", "input": "4x128x128x128", "mini_batch": 1, "steps": 5, "goal": 1.6},
    {"model": "unet3d", "input": "1x64x64x64", "mini_batch": 1, "steps": 2, "goal": 1.05},
    {"model": "resnet50", "input": "3x224x224", "mini_batch": 8, "steps": 3, "goal": 1.0},
]
# Single kernels against oneDNN's own: the model, its input and the step of the schedule.
LAYERS = {"conv1-bwd-weights": ("cosmoflow", "4x128x128x128", "conv1.backward_weights", 5.0)}
MEMORY_CASE, MEMORY_PEER, MEMORY_GOAL = "cosmoflow", "python3-torch", 0.60


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="append", default=[], help="name=command that measures a step of this peer")
    parser.add_argument("--orthant", default="build/release/bin/orthant")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="only these models", choices=[case["model"] for case in CASES])
    parser.add_argument("--layers", nargs="+", default=[], choices=sorted(LAYERS), help="only these kernels")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    return parser.parse_args()


def machine():
    """The processor's name and how busy it is without us."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"processor": names[0] if names else "unknown", "processors": os.cpu_count(), "load": os.getloadavg()[0]}


def run(command, threads):
    """The JSON that the command prints last, or {"error": ...}."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    start = done.stdout.find("{")
    if done.returncode != 0 or start < 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        return {"error": f"exit code {done.returncode}: {lines[-1]}"}
    return json.loads(done.stdout[start:])


def measure_case(case, programs, args):
    """{program: [result of every round]}; a program that fails is not asked again."""
    results = {name: [] for name in programs}
    for number in range(1, args.rounds + 1):
        for name, command in programs.items():
            if any("error" in result for result in results[name]):
                continue
            begin = time.monotonic()
            result = run([*command, case["model"], "--input", case["input"], "--batch", str(case["mini_batch"]),
                          "--threads", str(args.threads), "--steps", str(case["steps"])] +
                         (["--json"] if name == OURS else []), args.threads)
            results[name].append(result)
            told = result.get("error") or f"{result['seconds_best']:.3f} s per step"
            print(f"  round {number}, {name}: {told} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return results


def summarise(rounds):
    """Best of all rounds; median of their medians; the largest peak memory."""
    for result in rounds:
        if "error" in result:
            return result
    return {"version": rounds[0].get("version", ""),
            "seconds_best": min(result["seconds_best"] for result in rounds),
            "seconds_median": statistics.median(result["seconds_median"] for result in rounds),
            "peak_rss_bytes": max(result["peak_rss_bytes"] for result in rounds),
            "peak_share": max((result.get("peak_share", 0) for result in rounds), default=0) or None}


def print_case(case, summaries):
    """The table of a case and whether its goals are met."""
    print(f"\n{case['model']} {case['input']}, mini-batch {case['mini_batch']}")
    print(f"  {'':28}{'best s':>10}{'median s':>10}{'to ours':>10}{'peak RSS':>12}")
    ours = summaries[OURS]
    for name, summary in summaries.items():
        title = f"{name} {summary.get('version', '')}".strip()
        if "error" in summary:
            print(f"  {title:28}  failed: {summary['error']}")
            continue
        ratio = f"{summary['seconds_best'] / ours['seconds_best']:.2f}x" if "error" not in ours else ""
        print(f"  {title:28}{summary['seconds_best']:10.3f}{summary['seconds_median']:10.3f}{ratio:>10}"
              f"{summary['peak_rss_bytes'] / 2**20:8.0f} MiB")
    peers = {name: summary for name, summary in summaries.items() if name != OURS and "error" not in summary}
    if "error" in ours or not peers:
        return
    strongest = min(peers, key=lambda name: peers[name]["seconds_best"])
    ratio = peers[strongest]["seconds_best"] / ours["seconds_best"]
    print(f"  {verdict(ratio >= case['goal'])}: {strongest} takes {ratio:.2f} times our time, goal {case['goal']}; "
          f"{ours['peak_share']:.0%} of the FMA peak")
    if case["model"] == MEMORY_CASE and MEMORY_PEER in peers:
        share = ours["peak_rss_bytes"] / peers[MEMORY_PEER]["peak_rss_bytes"]
        print(f"  {verdict(share <= MEMORY_GOAL)}: our peak RSS is {share:.0%} of {MEMORY_PEER}'s, goal {MEMORY_GOAL:.0%}")


def verdict(met):
    return "met" if met else "not met"


def measure_layer(name, args):
    """Every implementation of one step of the schedule, oneDNN's in our layouts among them, and oneDNN's as PyTorch
    calls it, with the layouts that oneDNN chooses."""
    model, shape, step, goal = LAYERS[name]
    result = run([args.orthant, "bench", "kernels", model, "--input", shape, "--layer", step, "--threads",
                  str(args.threads), "--seconds", "2", "--json"], args.threads)
    peer = run(["/usr/bin/python3", os.path.join(os.path.dirname(__file__), "weight_gradient_torch.py"), "--threads",
                str(args.threads)], args.threads)
    if "error" in result or "error" in peer:
        print(f"\n{model} {shape} {step}: failed: {result.get('error') or peer['error']}")
        return result
    print(f"\n{model} {shape} {step}")
    for kernel in result["kernels"]:
        print(f"  {kernel['algorithm']:10} {kernel['implementation']:36}{kernel['seconds'] * 1e3:10.1f} ms"
              f"{kernel['gflops']:8.1f} GFLOP/s{'  runs' if kernel['chosen'] else ''}")
    for order, seconds in peer.items():
        print(f"  {'onednn':10} {'by PyTorch, ' + order.replace('_', '-'):36}{seconds * 1e3:10.1f} ms")
    ours = min(kernel["seconds"] for kernel in result["kernels"] if kernel["chosen"])
    ratio = min(peer.values()) / ours
    print(f"  {verdict(ratio >= goal)}: oneDNN takes {ratio:.1f} times our time, goal {goal}")
    theirs = [kernel["seconds"] for kernel in result["kernels"] if kernel["algorithm"] == "onednn"]
    if theirs:
        print(f"  oneDNN in our layouts, as no framework calls it, takes {min(theirs) / ours:.1f} times our time")
    return {**result, "pytorch": peer}


def main():
    args = arguments()
    host = machine()
    print(f"{host['processor']}, {host['processors']} processors, {args.threads} threads each, {args.rounds} rounds")
    if host["load"] > 0.5:
        print(f"The machine is busy (load {host['load']:.1f}): times will be too long and ratios uncertain.")
    figures = {"machine": host, "threads": args.threads, "rounds": args.rounds, "cases": [], "layers": {}}
    programs = {OURS: [args.orthant, "bench", "step"]}
    programs.update((name, shlex.split(command)) for name, _, command in (peer.partition("=") for peer in args.peer))
    for case in CASES if not args.layers or args.only else []:
        if args.only and case["model"] not in args.only:
            continue
        results = measure_case(case, programs, args)
        summaries = {name: summarise(rounds) for name, rounds in results.items()}
        print_case(case, summaries)
        figures["cases"].append({**case, "programs": summaries, "rounds": results})
    for layer in args.layers or ([] if args.only else sorted(LAYERS)):
        figures["layers"][layer] = measure_layer(layer, args)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=2)


main()
