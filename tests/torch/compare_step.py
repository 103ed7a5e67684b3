"""`orthant step` against PyTorch: loss, output, the gradient of every parameter and of the input.

The judge is PyTorch in double, on the same float weights and data. The limit is 1e-5 in relative norm. Where PyTorch's
own float result comes close to that or passes it (deep networks with batch normalisation amplify rounding), a float
program cannot be asked for more: the limit is then three times PyTorch's error.
"""

import argparse
import copy
import json
import pathlib
import sys
import tempfile

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))

import draw
import network_file
import networks_torch
import program
from compare import LIMIT, compare_tensors, differentiate, relative_error
from odd_networks import odd_networks


class Case:
    """A network, the shape of its mini-batch, how the program is told of it, and a draw that keeps clear of kinks."""

    def __init__(self, name, shape, settings=None, network=None, draw_number=0, deep=False):
        self.name, self.shape, self.network = name, shape, network
        self.draw_number, self.deep = draw_number, deep
        self.settings = settings or {}

    def model(self):
        if self.network:
            return network_file.NetworkFile(self.network)
        return networks_torch.make(self.name, self.shape[1:], **self.settings)

    def loss(self):
        return network_file.loss_of(self.network) if self.network else networks_torch.loss_of(self.name)

    def labels(self):
        return network_file.takes_labels(self.network) if self.network else not self.name.startswith("cosmoflow")

    def words(self):
        return [f"{key}={value}".lower() for key, value in self.settings.items()]

    def title(self):
        return " ".join([self.name, "x".join(map(str, self.shape)), *self.words()])


VOLUMES = [
    Case("cosmoflow", (2, 4, 32, 32, 32), {"dropout": 0}, draw_number=7),
    Case("cosmoflow", (1, 4, 20, 17, 24), {"dropout": 0, "outputs": 3}, draw_number=9),
    Case("cosmoflow", (2, 4, 24, 16, 20), {"dropout": 0, "batch_norm": True}, draw_number=9),
    Case("cosmoflow-mlperf", (1, 4, 32, 32, 32), {"dropout": 0}, draw_number=16),
    Case("unet3d", (1, 1, 16, 16, 16), draw_number=19, deep=True),
    Case("unet3d", (1, 2, 16, 24, 8), {"width": 8, "classes": 4, "batch_norm": False}, draw_number=5),
]

IMAGES = [
    Case("resnet18", (4, 3, 64, 64), {"classes": 100}, draw_number=7),
    Case("resnet50", (4, 3, 32, 48), {"classes": 100}, draw_number=22, deep=True),
    Case("resnet152", (4, 3, 32, 48), {"classes": 10}, draw_number=1, deep=True),
    Case("wide-resnet50", (4, 3, 32, 48), {"classes": 10}, draw_number=3, deep=True),
    Case("vgg16", (2, 3, 32, 32), {"dropout": 0, "classes": 100}, draw_number=11),
    Case("alexnet", (2, 3, 67, 63), {"dropout": 0, "classes": 100}, draw_number=5),
]


def odd_cases():
    return [Case(network["name"], (network.pop("mini_batch"), *network_file.sample_of(network)), network=network)
            for network in odd_networks()]


SUITES = {"volumes": lambda: VOLUMES, "images": lambda: IMAGES, "odd": odd_cases}


def compare(case, orthant, directory):
    """Returns what is wrong, line by line."""
    model = draw.fill(case.model(), 7, case.deep)
    x = draw.source(case.shape, case.draw_number)
    double = copy.deepcopy(model).double()
    margin = draw.kink_margin(copy.deepcopy(double), x.double())
    with torch.no_grad():
        target = draw.target(copy.deepcopy(model)(x).shape, case.labels(), case.draw_number)
    exact_target = target if case.labels() else target.double()
    if case.network:
        (directory / "network.yaml").write_text(json.dumps(case.network))
    program.save_weights(directory / "weights.safetensors", model)
    numpy.save(directory / "input.npy", x.numpy())
    numpy.save(directory / "target.npy", target.numpy())
    name = directory / "network.yaml" if case.network else case.name

    problems = compare_evaluation(case, orthant, directory, name, double, x, exact_target)
    loss, output, gradients = program.step(orthant, directory, name, case.words())
    judge = differentiate(double, case.loss(), x.double(), exact_target)
    peer = differentiate(model, case.loss(), x, target)
    worst, worst_peer, wrong = compare_tensors({"loss": loss, "output": output, **gradients}, judge, peer)
    problems += wrong
    state = "ok" if not problems else "WRONG"
    print(f"{state:5} {case.title():58} worst {worst[0]:.1e} {worst[1]:30} PyTorch {worst_peer:.1e}  "
          f"margin {margin:.0e}", flush=True)
    return problems


def compare_evaluation(case, orthant, directory, name, model, x, target):
    """Loss and output in evaluation mode, where normalisation takes the running statistics."""
    loss, output, _ = program.step(orthant, directory, name, case.words(), evaluate=True)
    model = copy.deepcopy(model).eval()
    with torch.no_grad():
        judge = model(x.double())
        judge_loss = case.loss()(judge, target)
    errors = {"loss": relative_error(loss, judge_loss), "output": relative_error(output, judge)}
    return [f"evaluation: {key}: off by {error:.2e}" for key, error in errors.items() if not error <= LIMIT]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    parser.add_argument("--suite", choices=sorted(SUITES), required=True)
    parser.add_argument("--only", default="", help="cases whose title holds this text")
    args = parser.parse_args()
    torch.set_num_threads(2)
    wrong = 0
    for case in SUITES[args.suite]():
        if args.only not in case.title():
            continue
        with tempfile.TemporaryDirectory() as directory:
            problems = compare(case, args.orthant, pathlib.Path(directory))
        wrong += len(problems)
        print(*(f"      {problem}\n" for problem in sorted(problems)[:20]), sep="", end="", flush=True)
    sys.exit(1 if wrong else 0)


main()
