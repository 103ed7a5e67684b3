"""Ten training steps through `orthant train` against PyTorch: losses, learning rates and the weights at the end. And a
hundred with convolutions whose errors are of class `fast`: losses, to 1e-3.

The judge is PyTorch in double with its own optimizers and learning-rate schedulers. Losses must agree to 1e-4. Every case
names its convolutions' algorithm, so that it rounds alike in every run: a ReLU at its kink goes either way, and ten
steps later a network with normalisations is off by more than 1e-4, in PyTorch's float as in ours. The draws of the
U-Net and of ResNet-18 keep clear of that.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy
import torch
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, PolynomialLR, StepLR

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))

import draw
import networks_torch
import program

STEPS = 10
LOSS_LIMIT = 1e-4
MANY_STEPS = 100
MANY_LOSS_LIMIT = 1e-3
# Of the way that a parameter went, besides the rounding of ten additions in float. A ReLU that rounding flips moves a
# gradient by some thousandths; a wrong update rule is off by tenths.
WEIGHT_LIMIT = 2e-2
ROUNDING = 3e-7

COSMOFLOW = {"model": "cosmoflow", "input": "4x16x16x16", "settings": {"dropout": 0}, "mini_batch": 2}
COSMOFLOW_NORM = {**COSMOFLOW, "settings": {"dropout": 0, "batch_norm": True}, "mini_batch": 4}
UNET = {"model": "unet3d", "input": "1x16x16x16", "settings": {"width": 8}, "mini_batch": 2}
RESNET = {"model": "resnet18", "input": "3x48x48", "settings": {}, "mini_batch": 4}
# How the draws keep clear of kinks: weights for deep networks, the strength of their offsets, and the data's seed.
DRAWS = {"cosmoflow": (False, 0, 3), "unet3d": (True, 3, 3), "resnet18": (True, 3, 3)}

# Name, algorithm, network, optimizer and learning rate of the run file; the same in PyTorch.
CASES = [
    ("sgd", "measured", COSMOFLOW, {"kind": "sgd"}, 0.01, lambda p: SGD(p, 0.01), None),
    ("momentum", "winograd", COSMOFLOW, {"kind": "sgd", "momentum": 0.9}, 0.003, lambda p: SGD(p, 0.003, momentum=0.9), None),
    ("adam", "direct", COSMOFLOW, "adam", 1e-4, lambda p: Adam(p, 1e-4), None),
    ("adam, normalised", "rule", COSMOFLOW_NORM, {"kind": "adam", "beta2": 0.99, "epsilon": 1e-6}, 1e-5,
     lambda p: Adam(p, 1e-5, betas=(0.9, 0.99), eps=1e-6), None),
    ("momentum", "winograd", UNET, {"kind": "sgd", "momentum": 0.9}, 0.01, lambda p: SGD(p, 0.01, momentum=0.9), None),
    ("adam", "onednn", UNET, {"kind": "adam"}, 1e-4, lambda p: Adam(p, 1e-4), None),
    ("nesterov, decay, steps", "direct", UNET, {"kind": "sgd", "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
     {"schedule": "step", "base": 0.01, "factor": 0.5, "every": 3},
     lambda p: SGD(p, 0.01, momentum=0.8, nesterov=True, weight_decay=0.01), lambda o: StepLR(o, 3, 0.5)),
    ("adam, decay, cosine", "onednn", COSMOFLOW, {"kind": "adam", "weight_decay": 0.1},
     {"schedule": "cosine", "base": 2e-4, "end": 1e-5},
     lambda p: Adam(p, 2e-4, weight_decay=0.1), lambda o: CosineAnnealingLR(o, STEPS, 1e-5)),
    ("adamw, linear", "matrix", UNET, {"kind": "adamw", "weight_decay": 0.3, "epsilon": 1e-6},
     {"schedule": "linear", "base": 2e-4, "end": 5e-5},
     lambda p: AdamW(p, 2e-4, weight_decay=0.3, eps=1e-6),
     lambda o: LinearLR(o, start_factor=1, end_factor=0.25, total_iters=STEPS)),
    ("decay, polynomial", "rule", COSMOFLOW, {"kind": "sgd", "weight_decay": 0.05},
     {"schedule": "polynomial", "base": 0.02, "power": 3},
     lambda p: SGD(p, 0.02, weight_decay=0.05), lambda o: PolynomialLR(o, STEPS, 3)),
    ("adamw, warm-up", "matrix", COSMOFLOW, "adamw", {"base": 2e-4, "warmup_steps": 4},
     lambda p: AdamW(p, 2e-4), lambda o: LambdaLR(o, lambda step: min(1, (step + 1) / 4))),
    ("momentum", "winograd", RESNET, {"kind": "sgd", "momentum": 0.9}, 1e-3, lambda p: SGD(p, 1e-3, momentum=0.9), None),
    ("momentum, fast", "winograd_large", UNET, {"kind": "sgd", "momentum": 0.9}, 0.01, lambda p: SGD(p, 0.01, momentum=0.9), None),
    ("momentum, fast", "winograd_staged", RESNET, {"kind": "sgd", "momentum": 0.9}, 1e-3, lambda p: SGD(p, 1e-3, momentum=0.9), None),
]
# Not Adam: with it, PyTorch in double and our direct convolutions, too, are 1e-2 apart after eighty steps.
LONG_CASES = [
    ("hundred, fast", "winograd_large", COSMOFLOW, {"kind": "sgd", "momentum": 0.9}, 0.001, lambda p: SGD(p, 0.001, momentum=0.9), None),
    ("hundred, fast", "winograd_staged", COSMOFLOW, {"kind": "sgd", "momentum": 0.9}, 0.001, lambda p: SGD(p, 0.001, momentum=0.9), None),
]


def train_torch(model, loss_function, optimizer, scheduler, batches):
    """Losses and learning rates of the steps; the model is left with the weights after the last."""
    losses, rates = [], []
    for x, target in batches:
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        loss = loss_function(model(x), target)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses, rates


def make_data(network, model, steps, directory):
    """Writes samples for all steps and returns them as batches in double."""
    batch = network["mini_batch"]
    sample = tuple(int(extent) for extent in network["input"].split("x"))
    seed = DRAWS[network["model"]][2]
    x = draw.source((steps * batch, *sample), seed)
    labels = network["model"] != "cosmoflow"
    with torch.no_grad():
        shape = (len(x), *model(x[:batch]).shape[1:])
    target = draw.target(shape, labels, seed)
    numpy.save(directory / "inputs.npy", x.numpy())
    numpy.save(directory / "targets.npy", target.numpy())
    return zip(x.double().split(batch), (target if labels else target.double()).split(batch))


def make_model(network):
    sample = tuple(int(extent) for extent in network["input"].split("x"))
    deep, offset, _ = DRAWS[network["model"]]
    return draw.fill(networks_torch.make(network["model"], sample, **network["settings"]), 11, deep, offset)


def weight_problems(ours, model, start):
    """Compares the way that every parameter and running statistic went."""
    problems = []
    for name, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        if name not in ours:
            problems.append(f"{name}: missing")
            continue
        begin, end = start[name].double().numpy(), value.numpy()
        error, way, size = (numpy.linalg.norm(item) for item in (ours[name] - end, end - begin, end))
        if not error <= WEIGHT_LIMIT * way + ROUNDING * size:
            problems.append(f"{name}: off by {error:.1e}, it went {way:.1e} and has size {size:.1e}")
    return problems


def compare(case, steps, limit, orthant, directory):
    """Returns what is wrong, line by line."""
    title, algorithm, network, optimizer, rate, make_optimizer, make_scheduler = case
    model = make_model(network)
    batches = make_data(network, make_model(network), steps, directory)
    program.save_weights(directory / "start.safetensors", model)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    losses, rates, weights = program.train(orthant, directory, {
        **network, "steps": steps, "optimizer": optimizer, "learning_rate": rate,
        "weights": str(directory / "start.safetensors"),
        "data": {"kind": "npy", "inputs": str(directory / "inputs.npy"), "targets": str(directory / "targets.npy"),
                 "shuffle": False}}, algorithm)

    model = model.double()
    torch_optimizer = make_optimizer(model.parameters())
    scheduler = make_scheduler(torch_optimizer) if make_scheduler else None
    judge, judge_rates = train_torch(model, networks_torch.loss_of(network["model"]), torch_optimizer, scheduler, batches)

    errors = [abs(loss - exact) / abs(exact) for loss, exact in zip(losses, judge)]
    problems = [] if len(losses) == steps else [f"{len(losses)} steps instead of {steps}"]
    problems += [f"step {i}: loss {losses[i - 1]} instead of {judge[i - 1]}"
                 for i, error in enumerate(errors, start=1) if not error <= limit]
    problems += [f"step {i}: learning rate {ours} instead of {exact}"
                 for i, (ours, exact) in enumerate(zip(rates, judge_rates), start=1) if abs(ours - exact) > 1e-9 * exact]
    if steps == STEPS:
        problems += weight_problems(weights, model, start)
    state = "ok" if not problems else "WRONG"
    print(f"{state:5} {network['model']:10} {title:24} {algorithm:15} loss {judge[0]:.5f} -> {judge[-1]:.5f}, "
          f"worst error {max(errors):.1e}", flush=True)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    parser.add_argument("--only", default="", help="cases whose title or network holds this text")
    args = parser.parse_args()
    torch.set_num_threads(2)
    wrong = 0
    for case, steps, limit in [*((case, STEPS, LOSS_LIMIT) for case in CASES),
                               *((case, MANY_STEPS, MANY_LOSS_LIMIT) for case in LONG_CASES)]:
        if args.only not in f"{case[2]['model']} {case[0]}":
            continue
        with tempfile.TemporaryDirectory() as directory:
            problems = compare(case, steps, limit, args.orthant, pathlib.Path(directory))
        wrong += len(problems)
        print(*(f"      {problem}\n" for problem in problems[:20]), sep="", end="", flush=True)
    sys.exit(1 if wrong else 0)


main()
