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
    "relu6": lambda x, layer: functional.relu6(x),
    "hard_sigmoid": lambda x, layer: functional.hardsigmoid(x),
    "elu": lambda x, layer: functional.elu(x, layer.get("alpha", 1.0)),
    "silu": lambda x, layer: functional.silu(x),
    "gelu": lambda x, layer: functional.gelu(x),
    "hard_swish": lambda x, layer: functional.hardswish(x),
    "softmax": lambda x, layer: torch.softmax(x, 1),
    "scale": lambda x, layer: x * layer["factor"] + layer.get("offset", 0.0),
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


def _blocks_to_cells(x, factor):
    """PyTorch's pixel_shuffle has one factor and two dims."""
    samples, channels, *extents = x.shape
    dims = len(factor)
    x = x.reshape(samples, -1, *factor, *extents)
    order = [0, 1] + [axis for dim in range(dims) for axis in (2 + dims + dim, 2 + dim)]
    return x.permute(order).reshape(samples, -1, *(f * e for f, e in zip(factor, extents)))


def _cells_to_blocks(x, factor):
    samples, channels, *extents = x.shape
    dims = len(factor)
    x = x.reshape(samples, channels, *(n for f, e in zip(factor, extents) for n in (e // f, f)))
    order = [0, 1] + [3 + 2 * dim for dim in range(dims)] + [2 + 2 * dim for dim in range(dims)]
    return x.permute(order).reshape(samples, -1, *(e // f for f, e in zip(factor, extents)))


class Affine(nn.Module):
    """weight * x + bias per channel; constants where it is not trainable."""

    def __init__(self, channels, layer):
        super().__init__()
        weight = torch.full((channels,), float(layer.get("weight_value", 1)))
        bias = torch.full((channels,), float(layer.get("bias_value", 0)))
        for name, value in (("weight", weight), ("bias", bias))[:2 if layer.get("bias", True) else 1]:
            if layer.get("trainable", True):
                self.register_parameter(name, nn.Parameter(value))
            else:
                self.register_buffer(name, value)

    def forward(self, x):
        shape = (1, -1) + (1,) * (x.dim() - 2)
        y = x * self.weight.view(shape)
        return y + self.bias.view(shape) if hasattr(self, "bias") else y


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
        if op == "multiply":
            return sources[0] * sources[1]
        if op in ACTIVATIONS:
            return ACTIVATIONS[op](x, layer)
        return getattr(self, "_" + op)(layer, x)

    def _module(self, layer, make):
        if layer["name"] not in self._modules:
            self.add_module(layer["name"], make())
        return self._modules[layer["name"]]

    def _conv(self, layer, x):
        window = Window(layer, x.shape[2:])
        conv = self._module(layer, lambda: {3: nn.Conv1d, 4: nn.Conv2d, 5: nn.Conv3d}[x.dim()](
            x.shape[1], layer["filters"], window.kernel, window.stride, 0, window.dilation,
            layer.get("groups", 1), layer.get("bias", True)))
        return conv(window.padded(x))

    def _conv_transpose(self, layer, x):
        window = Window(layer, x.shape[2:])
        extra = _per_dim(layer.get("output_padding", 0), x.dim() - 2)
        conv = self._module(layer, lambda: {3: nn.ConvTranspose1d, 4: nn.ConvTranspose2d, 5: nn.ConvTranspose3d}[x.dim()](
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
        norms = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
        norm = self._module(layer, lambda: norms[x.dim()](
            x.shape[1], layer.get("epsilon", 1e-5), layer.get("momentum", 0.1)))
        return norm(x)

    def _group_norm(self, layer, x):
        return self._module(layer, lambda: nn.GroupNorm(
            layer["groups"], x.shape[1], layer.get("epsilon", 1e-5), layer.get("affine", True)))(x)

    def _instance_norm(self, layer, x):
        return self._module(layer, lambda: {3: nn.InstanceNorm1d, 4: nn.InstanceNorm2d, 5: nn.InstanceNorm3d}[x.dim()](
            x.shape[1], layer.get("epsilon", 1e-5), affine=layer.get("affine", True)))(x)

    def _layer_norm(self, layer, x):
        norm = self._module(layer, lambda: nn.LayerNorm(
            x.shape[1], layer.get("epsilon", 1e-5), layer.get("affine", True)))
        return norm(x.movedim(1, -1)).movedim(-1, 1)

    def _prelu(self, layer, x):
        count = 1 if layer.get("shared") else x.shape[1]
        return self._module(layer, lambda: nn.PReLU(count, layer.get("start", 0.25)))(x)

    def _affine(self, layer, x):
        return self._module(layer, lambda: Affine(x.shape[1], layer))(x)

    def _resize(self, layer, x):
        dims = x.dim() - 2
        linear = layer.get("mode", "nearest") == "linear"
        mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[dims] if linear else "nearest"
        corners = layer.get("align_corners", False) if linear else None
        if "size" in layer:
            return functional.interpolate(x, _per_dim(layer["size"], dims), mode=mode, align_corners=corners)
        factor = [float(one) for one in _per_dim(layer["factor"], dims)]
        return functional.interpolate(x, scale_factor=factor, mode=mode, align_corners=corners)

    def _slice(self, layer, x):
        dims = x.dim() - 2
        channel, channels = layer.get("first_channel", 0), layer.get("channels", 0)
        x = x[:, channel:channel + channels if channels else None]
        first, size, step = (_per_dim(layer.get(key, default), dims)
                             for key, default in (("first", 0), ("size", 0), ("step", 1)))
        for dim, (begin, count, stride) in enumerate(zip(first, size, step), start=2):
            end = begin + (count - 1) * stride + 1 if count else x.shape[dim]
            x = x[(slice(None),) * dim + (slice(begin, end, stride),)]
        return x

    def _pad(self, layer, x):
        sides = [side if isinstance(side, list) else [side, side] for side in _per_dim(layer["pad"], x.dim() - 2)]
        mode = {"zeros": "constant", "reflect": "reflect", "edge": "replicate"}[layer.get("mode", "zeros")]
        return functional.pad(x, list(itertools.chain(*reversed(sides))), mode=mode)

    def _global_max_pool(self, layer, x):
        pool = {3: functional.adaptive_max_pool1d, 4: functional.adaptive_max_pool2d, 5: functional.adaptive_max_pool3d}
        return pool[x.dim()](x, 1)

    def _channel_shuffle(self, layer, x):
        # As functional.channel_shuffle, which has no derivative in older releases.
        return x.unflatten(1, (layer["groups"], -1)).transpose(1, 2).flatten(1, 2)

    def _pixel_shuffle(self, layer, x):
        return _blocks_to_cells(x, _per_dim(layer["factor"], x.dim() - 2))

    def _pixel_unshuffle(self, layer, x):
        return _cells_to_blocks(x, _per_dim(layer["factor"], x.dim() - 2))

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
