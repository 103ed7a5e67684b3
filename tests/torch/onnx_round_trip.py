"""From PyTorch through an ONNX file, twenty steps of training and an exported file back to PyTorch.

After that three evaluate the same: PyTorch with the weights from safetensors, PyTorch with the weights from the exported ONNX file, and the
program with that file. PyTorch's own twenty steps come out the same, too.
"""

import argparse
import copy
import pathlib
import sys
import tempfile

import numpy
import torch

import draw
import program
from compare import LIMIT, relative_error
from compare_onnx import export
from onnx_networks import NETWORKS
from tensor_files import read_safetensors

STEPS, RATE = 20, 0.002
NAMES = ("resnet", "convnext", "unet3d-instance", "cosmoflow")


def fields(message):
    """(number, value) of the fields of a protobuf message; bytes for what has a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            size = varint()
            yield tag >> 3, message[at:at + size]
            at += size
        else:
            yield tag >> 3, message[at:at + (8 if tag & 7 == 1 else 4)]
            at += 8 if tag & 7 == 1 else 4


def initializers(path):
    """{name: array} of the float tensors in an ONNX file."""
    found = {}
    (graph,) = (value for number, value in fields(path.read_bytes()) if number == 7)
    for number, tensor in fields(graph):
        if number != 5:
            continue
        parts = list(fields(tensor))
        kind = dict(parts)
        if kind[2] == 1:
            found[kind[8].decode()] = numpy.frombuffer(kind[9], "<f4").reshape([value for key, value in parts if key == 1])
    return found


def train_in_torch(model, x, target, loss):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(x), target).backward()
        optimizer.step()
    return model


def with_weights(make, tensors):
    model = make()
    wanted = model.state_dict().keys()
    model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in tensors.items() if name in wanted})
    return model.double().eval()


def check(name, orthant, folder):
    make, shape, kind = NETWORKS[name]
    model = draw.fill(make(), 7).train()
    labels = kind == "cross_entropy"
    x = draw.source(shape, 3)
    with torch.no_grad():
        target = draw.target(copy.deepcopy(model)(x).shape, labels, 3)
    loss = torch.nn.functional.cross_entropy if labels else torch.nn.functional.mse_loss
    export(copy.deepcopy(model), x, folder / "net.onnx")
    # The exporter runs the network once in training form, so running statistics in the file are a step ahead.
    model.load_state_dict({key: torch.from_numpy(value.copy()) for key, value in initializers(folder / "net.onnx").items()
                           if key in model.state_dict()}, strict=False)
    numpy.save(folder / "input.npy", x.numpy())
    numpy.save(folder / "target.npy", target.numpy())
    program.train(orthant, folder, {
        "model": str(folder / "net.onnx"), "settings": {"loss": kind}, "mini_batch": shape[0], "steps": STEPS,
        "optimizer": {"kind": "sgd"}, "learning_rate": {"base": RATE}, "data": {"kind": "npy", "inputs": str(folder / "input.npy"),
                                                                               "targets": str(folder / "target.npy"), "shuffle": False}}, "rule")
    weights = folder / "run/weights.safetensors"
    program.run([orthant, "export", folder / "net.onnx", "--weights", weights, "--output", folder / "trained.onnx"])
    program.run([orthant, "step", folder / "trained.onnx", "--set", f"loss={kind}", "--input", folder / "input.npy", "--target",
                 folder / "target.npy", "--dump", folder / "dump", "--evaluate", "--threads", 2])
    with torch.no_grad():
        judge = with_weights(make, read_safetensors(weights))(x.double())
        exported = with_weights(make, initializers(folder / "trained.onnx"))(x.double())
        before = with_weights(make, {key: value.numpy() for key, value in model.state_dict().items()})(x.double())
    ours = read_safetensors(folder / "dump/outputs.safetensors")["output"]
    with torch.enable_grad():
        own = train_in_torch(copy.deepcopy(model).double(), x.double(), target if labels else target.double(), loss).eval()
    errors = {"program": relative_error(ours, judge), "weights of the file": relative_error(exported, judge),
              "trained by PyTorch": relative_error(own(x.double()).detach(), judge)}
    moved = relative_error(before, judge)
    wrong = [key for key, error in errors.items() if not error <= LIMIT] + (["nothing was trained"] if moved < 1e-3 else [])
    print(f"{'WRONG' if wrong else 'ok':5} {name:20} moved {moved:.1e}  " + "  ".join(f"{key} {error:.1e}" for key, error in errors.items()), flush=True)
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    args = parser.parse_args()
    torch.set_num_threads(2)
    wrong = 0
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            wrong += check(name, args.orthant, pathlib.Path(folder))
    sys.exit(1 if wrong else 0)


main()
