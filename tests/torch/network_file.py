"""An interpreter of Orthant's network files in PyTorch, as the judge of `orthant step` on such files.

A network is the dictionary that the file holds; JSON is YAML, so json.dumps writes the file.
"""

import itertools

import torch
from torch import nn
from torch.nn import functional

ACTIVATIONS = {
    "identity": lambda x, layer: x,
    "relu": lambda x, layer: functional.relu(x),
    "leaky_relu": lambda x, layer: functional.leaky_relu(x, layer.get("slope", 0.01)),
    "tanh": lambda x, layer: torch.tanh(x),
    "sigmoid": lambda x, layer: torch.sigmoid(x),
    "softmax": lambda x, layer: torch.softmax(x, 1),
    "scale": lambda x, layer: x * layer["factor"],
    "flatten": lambda x, layer: x.flatten(1),
    "global_average_pool": lambda x, layer: x.mean(tuple(range(2, x.dim())), keepdim=True),
}


def sample_of(network):
    return tuple(int(extent) for extent in network["input"].split("x"))


def _per_dim(value, dims):
    return list(value) if isinstance(value, list) else [value] * dims


class Window:
    """Kernel, stride, dilation and padding (pairs of below and above) of a layer for a source of given extents."""

    def __init__(self, layer, extents, stride=1):
        dims = len(extents)
        self.kernel = _per_dim(layer["kernel"], dims)
        self.stride = _per_dim(layer.get("stride", stride or self.kernel), dims)
        self.dilation = _per_dim(layer.get("dilation", 1), dims)
        self.pad = self._padding(layer.get("pad", 0), extents)

    def _padding(self, pad, extents):
        if pad != "same":
            return [side if isinstance(side, list) else [side, side] for side in _per_dim(pad, len(extents))]
        pairs = []
        for extent, kernel, stride, dilation in zip(extents, self.kernel, self.stride, self.dilation):
            outputs = -(-extent // stride)
            total = max(0, (outputs - 1) * stride + dilation * (kernel - 1) + 1 - extent)
            pairs.append([total // 2, total - total // 2])
        return pairs

    def padded(self, x, value=0.0):
        return functional.pad(x, list(itertools.chain(*reversed(self.pad))), value=value)

    def windows(self, x):
        """Every window of a padded tensor, its taps in the last dim."""
        for dim, (kernel, stride, dilation) in enumerate(zip(self.kernel, self.stride, self.dilation), start=2):
            x = x.unfold(dim, dilation * (kernel - 1) + 1, stride)[..., ::dilation]
        return x.flatten(2 + len(self.kernel))


class NetworkFile(nn.Module):
    """Runs layer by layer; modules are made when the first sample shows the shapes."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self(torch.zeros(2, *sample_of(network)))

    def forward(self, x):
        values, last = {"input": x}, "input"
        for layer in self.network["layers"]:
            names = layer.get("from", last)
            sources = [values[name] for name in (names if isinstance(names, list) else [names])]
            last = layer["name"]
            values[last] = self._run(layer, sources)
        return values[last].flatten(1) if self.network.get("vector") else values[last]

    def _run(self, layer, sources):
        op, x = layer["op"], sources[0]
        if op == "add":
            return sum(sources)
        if op == "concat":
            return torch.cat(sources, 1)
        if op in ACTIVATIONS:
            return ACTIVATIONS[op](x, layer)
        return getattr(self, "_" + op)(layer, x)

    def _module(self, layer, make):
        if layer["name"] not in self._modules:
            self.add_module(layer["name"], make())
        return self._modules[layer["name"]]

    def _conv(self, layer, x):
        window = Window(layer, x.shape[2:])
        conv = self._module(layer, lambda: (nn.Conv2d if x.dim() == 4 else nn.Conv3d)(
            x.shape[1], layer["filters"], window.kernel, window.stride, 0, window.dilation,
            layer.get("groups", 1), layer.get("bias", True)))
        return conv(window.padded(x))

    def _conv_transpose(self, layer, x):
        window = Window(layer, x.shape[2:])
        extra = _per_dim(layer.get("output_padding", 0), x.dim() - 2)
        conv = self._module(layer, lambda: (nn.ConvTranspose2d if x.dim() == 4 else nn.ConvTranspose3d)(
            x.shape[1], layer["filters"], window.kernel, window.stride, 0, extra,
            layer.get("groups", 1), layer.get("bias", True), window.dilation))
        y = conv(x)
        for dim, (below, above) in enumerate(window.pad, start=2):
            y = y.narrow(dim, below, y.shape[dim] - below - above)
        return y

    def _dense(self, layer, x):
        dense = self._module(layer, lambda: nn.Linear(x.shape[1], layer["features"], layer.get("bias", True)))
        return dense(x.flatten(1))

    def _batch_norm(self, layer, x):
        norm = self._module(layer, lambda: (nn.BatchNorm3d if x.dim() == 5 else nn.BatchNorm2d)(
            x.shape[1], layer.get("epsilon", 1e-5), layer.get("momentum", 0.1)))
        return norm(x)

    def _max_pool(self, layer, x):
        window = Window(layer, x.shape[2:], stride=None)
        return window.windows(window.padded(x, -float("inf"))).amax(-1)

    def _average_pool(self, layer, x):
        window = Window(layer, x.shape[2:], stride=None)
        sums = window.windows(window.padded(x)).sum(-1)
        inside = torch.ones_like(x)
        if layer.get("count_include_pad", True):
            return sums / window.windows(window.padded(inside, 1.0)).sum(-1)
        return sums / window.windows(window.padded(inside)).sum(-1)


def _soft_dice(output, labels, smoothing=1e-5):
    classes = output.shape[1]
    p = torch.softmax(output, 1).transpose(0, 1).reshape(classes, -1)
    t = functional.one_hot(labels.flatten(), classes).to(p.dtype).t()
    return 1 - ((2 * (p * t).sum(1) + smoothing) / (p.sum(1) + t.sum(1) + smoothing)).mean()


LOSSES = {
    "mean_squared_error": functional.mse_loss,
    "mean_absolute_error": functional.l1_loss,
    "cross_entropy": functional.cross_entropy,
    "soft_dice": _soft_dice,
}


def loss_of(network):
    """The loss of a network file as a function of output and target."""
    terms = network["loss"] if isinstance(network["loss"], list) else [network["loss"]]
    terms = [term if isinstance(term, dict) else {"kind": term} for term in terms]
    return lambda output, target: sum(term.get("weight", 1) * LOSSES[term["kind"]](output, target) for term in terms)


def takes_labels(network):
    return "cross_entropy" in str(network["loss"]) or "soft_dice" in str(network["loss"])
