"""Random weights and data whose numbers do not depend on the version of PyTorch, and a check that they suit a comparison.

A ReLU whose source is zero but for rounding, or a max pool over two equal numbers, may go either way in any float
program, and gradients then differ by far more than rounding. `kink_margin` measures how close a network comes to that.
"""

import math

import numpy
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode


def fill(model, seed, deep=False, offset=1.5):
    """Weights that keep signals of size one; biases, scales and statistics that matter.

    `deep` networks amplify rounding until PyTorch in float has few digits left, and have millions of
    activations, some of them at their kink: the last normalisation of every branch is made weak, and the biases of
    normalisations (`offset` up or down) so strong that few activations are near zero.
    """
    random = numpy.random.RandomState(seed)
    weak = _last_of_branches(model) if deep else ()
    for name, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        numbers = _numbers(name, tuple(value.shape), random)
        module, _, part = name.rpartition(".")
        if deep and part == "bias" and f"{module}.running_var" in model.state_dict():
            numbers = numpy.sign(numbers) * (0.3 if module in weak else offset)
        elif part == "weight" and module in weak:
            numbers *= 0.05
        value.copy_(torch.from_numpy(numbers.astype("f4")))
    return model


def _numbers(name, shape, random):
    if len(shape) > 1:
        return random.standard_normal(shape) * math.sqrt(1.5 / math.prod(shape[1:]))
    if name.endswith("running_var") or name.endswith("weight"):
        return random.uniform(0.5, 1.5, shape)
    return random.standard_normal(shape) * 0.2


def _last_of_branches(model):
    """The last normalisation of every block that has a `downsample`: bn3 of a bottleneck, else bn2."""
    blocks = [name for name, module in model.named_modules() if hasattr(module, "downsample")]
    return {f"{block}.bn{3 if hasattr(model.get_submodule(block), 'bn3') else 2}" for block in blocks}


def source(shape, seed):
    return torch.from_numpy(numpy.random.RandomState(seed).standard_normal(shape).astype("f4"))


def target(output_shape, labels, seed):
    """Values of the output's shape, or labels without its channels."""
    random = numpy.random.RandomState(seed + 1)
    if labels:
        return torch.from_numpy(random.randint(0, output_shape[1], (output_shape[0], *output_shape[2:])))
    return torch.from_numpy(random.uniform(-1, 1, output_shape).astype("f4"))


class _Margins(TorchFunctionMode):
    """Sees every ReLU and max pool and keeps the smallest distance to a kink, relative to the tensor's size."""

    def __init__(self):
        self.smallest = math.inf

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (functional.relu, functional.leaky_relu):
            self._keep(args[0].abs(), args[0])
        elif function in (functional.max_pool2d, functional.max_pool3d):
            self._keep_pool(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def _keep(self, distances, x):
        self.smallest = min(self.smallest, (distances.min() / x.square().mean().sqrt()).item())

    def _keep_pool(self, x, kernel, stride=None, padding=0, *rest, **options):
        x = functional.pad(x, [padding] * (2 * (x.dim() - 2)), value=-1.0)
        windows = x
        for dim in range(2, x.dim()):
            windows = windows.unfold(dim, kernel, stride or kernel)
        first, second = windows.flatten(x.dim()).topk(2, -1).values.unbind(-1)
        if (first > 0).any():
            self._keep((first - second)[first > 0], x)


def kink_margin(model, x):
    """The smallest distance of any activation to its kink and of any two rivals of a max pool."""
    margins = _Margins()
    with torch.no_grad(), margins:
        model(x)
    return margins.smallest
