"""`orthant step` on networks that PyTorch has exported to ONNX, against PyTorch: loss, output and all gradients.

The judge is PyTorch in double, as in compare_step.py, on one rank and on four.
"""

import argparse
import copy
import pathlib
import sys
import tempfile
import warnings

import numpy
import torch
from torch.nn import functional as F

import draw
import network_file
import program
from compare import compare_tensors, differentiate
from onnx_networks import NETWORKS
from tensor_files import read_safetensors

OUTPUTS = ("main", "side")


class Chosen(torch.nn.Module):
    """One of the outputs of a network that has several."""

    def __init__(self, model, output):
        super().__init__()
        self.model, self.output = model, output

    def forward(self, x):
        y = self.model(x)
        return y[OUTPUTS.index(self.output)] if self.output else y


def export(model, x, path, training=True, opset=16, output=None, dynamic=False):
    """As docs/onnx.md says."""
    names = list(OUTPUTS) if output else ["output"]
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    axes = {"input": {i: f"axis{i}" for i in range(x.dim()) if i != 1}} if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, x, str(path), training=mode, do_constant_folding=not training, opset_version=opset,
                          input_names=["input"], output_names=names, dynamic_axes=axes)


def step(orthant, folder, settings, *options):
    command = [orthant, "step", folder / "net.onnx", "--threads", 1, "--algorithm", "rule", "--input", folder / "input.npy", "--target",
               folder / "target.npy", "--dump", folder / "dump", "--input-gradient"]
    for setting in settings:
        command += ["--set", setting]
    program.run([*command, *options])
    import json
    loss = json.loads((folder / "dump/result.json").read_text())["loss"]
    output = read_safetensors(folder / "dump/outputs.safetensors")["output"]
    return {"loss": loss, "output": output, **read_safetensors(folder / "dump/gradients.safetensors")}


def prepare(name, folder, **options):
    """Exports a network with its data; what `step` is told, and what PyTorch in double and in float say."""
    make, shape, loss, *rest = NETWORKS[name]
    output = rest[0] if rest else None
    torch.manual_seed(5)
    model = draw.fill(make(), 7)
    model.train()
    labels = loss in ("cross_entropy", "soft_dice")
    x = draw.source(shape, 3)
    whole = Chosen(copy.deepcopy(model), output)
    with torch.no_grad():
        target = draw.target(copy.deepcopy(whole)(x).shape, labels, 3)
    export(copy.deepcopy(model), x, folder / "net.onnx", output=output, **options)
    numpy.save(folder / "input.npy", x.numpy())
    numpy.save(folder / "target.npy", target.numpy())
    function = network_file.LOSSES[loss]
    strip = lambda found: {key.removeprefix("model."): value for key, value in found.items() if value is not None}
    judge = strip(differentiate(copy.deepcopy(whole).double(), function, x.double(), target if labels else target.double()))
    peer = strip(differentiate(whole, function, x, target))
    settings = [f"loss={loss}"] + ([f"output={output}"] if output else [])
    return settings, judge, peer


def grids(shape):
    yield "1", []
    space = {3: "w4", 4: "h2w2", 5: "d2h2"}[len(shape)]
    for grid in (space, "n2f2"):
        yield grid, ["--ranks", 4, "--grid", grid]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    parser.add_argument("--only", default="", help="networks whose name holds this text")
    parser.add_argument("--ranks", type=int, default=4, help="1: only one rank")
    args = parser.parse_args()
    torch.set_num_threads(2)
    wrong = 0
    for name, (_, shape, *_) in NETWORKS.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            try:
                settings, judge, peer = prepare(name, folder)
                for grid, options in grids(shape):
                    if args.ranks == 1 and grid != "1":
                        continue
                    ours = step(args.orthant, folder, settings, *options)
                    if "mean" in ours and "mean" not in judge:
                        ours.pop("mean")
                    worst, worst_peer, problems = compare_tensors(ours, judge, peer)
                    print(f"{'WRONG' if problems else 'ok':5} {name:24} {grid:5} worst {worst[0]:.1e} {worst[1]:30} PyTorch {worst_peer:.1e}", flush=True)
                    print(*(f"      {problem}\n" for problem in sorted(problems)[:12]), sep="", end="", flush=True)
                    wrong += len(problems)
            except SystemExit as error:
                wrong += 1
                print(f"WRONG {name}: {str(error)[-1500:]}", flush=True)
    sys.exit(1 if wrong else 0)


main()
