"""`orthant step` on networks that PyTorch has exported to ONNX, against PyTorch: loss, output and all gradients.

The judge is PyTorch in double, as in compare_step.py, on one rank and on four.
"""

import argparse
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

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


def step_command(orthant, folder, settings, *options):
    files = ["--input", folder / "input.npy", "--target", folder / "target.npy", "--dump", folder / "dump"]
    words = [word for setting in settings for word in ("--set", setting)]
    return [orthant, "step", folder / "net.onnx", "--threads", 1, "--algorithm", "rule", "--input-gradient", *files, *words, *options]


def results(folder):
    """What `step` left: loss, output and gradients by name."""
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
    """Three ways to cut over four ranks: space, samples and filters, and layer by layer at random."""
    return {3: "w4", 4: "h2w2", 5: "d2h2"}[len(shape)], "n2f2", "random"


def random_plan(orthant, folder, name, settings, shape):
    """A plan file with a grid of its own for every layer. What does not suit a layer is not cut."""
    words = [word for setting in settings for word in ("--set", setting)]
    layers = json.loads(program.run([orthant, "inspect", folder / "net.onnx", *words, "--json"]))["layers"]
    generator = random.Random(name)
    nodes = []
    for layer in layers:
        extents = dict(zip("c" + "dhw"[5 - len(shape):], layer["shape"]))
        grid = {"n": 2} if generator.random() < 0.5 else {}
        dim = generator.choice([dim for dim, extent in extents.items() if extent >= 8 and dim != "c" or extent % 4 == 0 and dim == "c"] or ["n"])
        grid[dim] = 2
        nodes.append({"node": layer["name"], "grid": grid, "first_rank": generator.choice((0, 0, 2)) if len(grid) == 1 else 0})
    path = folder / "plan.json"
    for _ in range(60):
        path.write_text(json.dumps({"format": "orthant-plan", "version": 1, "ranks": 4, "nodes": nodes}))
        done = subprocess.run([str(word) for word in step_command(orthant, folder, settings, "--plan", path, "--ranks", 4)], capture_output=True, text=True)
        if done.returncode == 0:
            return True
        refused = [node for node in nodes if f" {node['node']}:" in done.stderr or f"'{node['node']}'" in done.stderr]
        if done.returncode not in (65, 71) or not refused:
            raise SystemExit(f"random plan of {name}: {done.stderr}")
        refused[-1].update(grid={}, first_rank=0)
    raise SystemExit(f"no random plan of {name}: {done.stderr}")


def compare(name, orthant, folder, plans):
    """Lines of what was seen, and how many things are wrong."""
    settings, judge, peer = prepare(name, folder)
    shape, wrong = NETWORKS[name][1], 0
    for grid in plans:
        if grid == "random":
            random_plan(orthant, folder, name, settings, shape)
        else:
            program.run(step_command(orthant, folder, settings, *(["--grid", grid, "--ranks", 4] if grid != "1" else [])))
        ours = results(folder)
        # A buffer that the file cannot tell from a parameter.
        ours.pop("mean", None)
        worst, worst_peer, problems = compare_tensors(ours, judge, peer)
        print(f"{'WRONG' if problems else 'ok':5} {name:24} {grid:6} worst {worst[0]:.1e} {worst[1]:30} PyTorch {worst_peer:.1e}", flush=True)
        print(*(f"      {problem}\n" for problem in sorted(problems)[:12]), sep="", end="", flush=True)
        wrong += len(problems)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    parser.add_argument("--only", default="", help="networks whose name holds this text")
    parser.add_argument("--plans", choices=("one", "some", "all"), default="some", help="one rank only; and one cut; and all cuts")
    args = parser.parse_args()
    torch.set_num_threads(2)
    wrong = 0
    for i, (name, (_, shape, *_)) in enumerate(NETWORKS.items()):
        if args.only not in name:
            continue
        cuts = grids(shape)
        plans = {"one": (), "some": (cuts[i % len(cuts)],), "all": cuts}[args.plans]
        with tempfile.TemporaryDirectory() as directory:
            try:
                wrong += compare(name, args.orthant, pathlib.Path(directory), ("1", *plans))
            except SystemExit as error:
                wrong += 1
                print(f"WRONG {name}: {str(error)[-1500:]}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
