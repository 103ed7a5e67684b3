"""Network files with windows, groups, activations and losses that the zoo does not have: some by hand, more at random."""

import random


def _layer(name, op, **keys):
    return {"name": name, "op": op, **keys}


def _network(name, mini_batch, shape, loss, *layers):
    return {"name": name, "mini_batch": mini_batch, "input": shape, "layers": list(layers), "loss": loss}


BY_HAND = [
    _network("transposed-2d", 2, "3x9x7", "mean_absolute_error",
             _layer("c1", "conv", filters=12, kernel=[3, 5], stride=2, pad=[[0, 1], [2, 1]]),
             _layer("a1", "leaky_relu", slope=0.2),
             _layer("t1", "conv_transpose", filters=8, kernel=3, stride=2, pad=1, output_padding=1),
             _layer("a2", "tanh"),
             _layer("t2", "conv_transpose", filters=6, kernel=[2, 4], stride=[3, 2], pad=[[0, 0], [2, 1]], groups=2,
                    dilation=[2, 1], output_padding=[2, 0])),
    _network("transposed-3d", 2, "4x5x6x7", "mean_squared_error",
             _layer("t1", "conv_transpose", filters=16, kernel=3, stride=[1, 2, 3], pad=[[1, 0], [1, 1], [0, 1]],
                    output_padding=[0, 1, 2]),
             _layer("s1", "sigmoid"),
             _layer("c1", "conv", filters=16, kernel=[1, 3, 2], dilation=[1, 2, 1], groups=4, bias=False),
             _layer("b1", "batch_norm", epsilon=1e-3, momentum=0.3),
             _layer("r1", "relu"),
             _layer("t2", "conv_transpose", filters=3, kernel=2, stride=2, bias=False)),
    _network("depthwise-2d", 3, "6x17x13", "cross_entropy",
             _layer("c1", "conv", filters=18, kernel=5, stride=[2, 1], pad="same", groups=6),
             _layer("b1", "batch_norm"),
             _layer("a1", "sigmoid"),
             _layer("p1", "average_pool", kernel=3, stride=2, pad=1, count_include_pad=False),
             _layer("c2", "conv", filters=18, kernel=3, pad="same", dilation=2, groups=18),
             _layer("sum", "add", **{"from": ["c2", "p1"]}),
             _layer("g", "global_average_pool"),
             _layer("fc", "dense", features=7, bias=False)),
    _network("pools-3d", 2, "2x11x12x13", "mean_squared_error",
             _layer("c1", "conv", filters=10, kernel=3, pad=[[0, 2], [1, 1], [2, 0]]),
             _layer("a1", "tanh"),
             _layer("p1", "max_pool", kernel=[2, 3, 3], stride=[1, 2, 2], pad=[0, 1, 1]),
             _layer("p2", "average_pool", kernel=[3, 2, 3], stride=[2, 2, 1], pad=[[1, 0], [0, 1], [1, 1]]),
             _layer("c2", "conv", filters=5, kernel=[1, 1, 3], stride=[1, 1, 2]),
             _layer("f", "flatten"),
             _layer("fc", "dense", features=6),
             _layer("s", "scale", factor=-0.7)),
    _network("dice-3d", 2, "1x8x8x8", [{"kind": "cross_entropy", "weight": 0.3}, {"kind": "soft_dice", "weight": 0.7}],
             _layer("c1", "conv", filters=8, kernel=3, pad=1, bias=False),
             _layer("b1", "batch_norm"),
             _layer("a1", "leaky_relu"),
             _layer("p1", "max_pool", kernel=2),
             _layer("c2", "conv", filters=16, kernel=3, pad=1),
             _layer("a2", "relu"),
             _layer("t1", "conv_transpose", filters=8, kernel=2, stride=2),
             _layer("cat", "concat", **{"from": ["a1", "t1", "b1"]}),
             _layer("c3", "conv", filters=4, kernel=1)),
    _network("dice-2d", 3, "2x15x9", "soft_dice",
             _layer("c1", "conv", filters=33, kernel=3, pad="same"),
             _layer("a1", "relu"),
             _layer("c2", "conv", filters=5, kernel=[3, 1], pad="same")),
    _network("softmax-values", 4, "5x6x6", ["mean_squared_error", {"kind": "mean_absolute_error", "weight": 0.25}],
             _layer("c1", "conv", filters=9, kernel=2, stride=2),
             _layer("sm", "softmax"),
             _layer("c2", "conv", filters=4, kernel=3),
             _layer("f", "flatten"),
             _layer("sm2", "softmax")),
    _network("shared-source", 2, "3x10x10", "mean_squared_error",
             _layer("c1", "conv", filters=16, kernel=3, pad=1),
             _layer("r", "relu", **{"from": "c1"}),
             _layer("t", "tanh", **{"from": "c1"}),
             _layer("c2", "conv", filters=16, kernel=1, **{"from": "c1"}),
             _layer("sum", "add", **{"from": ["r", "t", "c2", "c1"]}),
             _layer("cat", "concat", **{"from": ["sum", "r", "input"]}),
             _layer("i", "identity"),
             _layer("c3", "conv", filters=2, kernel=5, stride=3, pad=[[3, 1], [0, 2]])),
    _network("norms-per-sample-3d", 2, "4x6x7x8", "mean_squared_error",
             _layer("c1", "conv", filters=12, kernel=3, pad=1),
             _layer("g1", "group_norm", groups=3),
             _layer("a1", "silu"),
             _layer("c2", "conv", filters=12, kernel=3, pad=1, bias=False),
             _layer("i1", "instance_norm", epsilon=1e-3),
             _layer("sum", "add", **{"from": ["i1", "a1"]}),
             _layer("a2", "leaky_relu"),
             _layer("i2", "instance_norm", affine=False),
             _layer("a3", "elu", alpha=0.7),
             _layer("g2", "group_norm", groups=1, affine=False),
             _layer("sum2", "add", **{"from": ["g2", "a2"]}),
             _layer("a4", "gelu"),
             _layer("c3", "conv", filters=8, kernel=1),
             _layer("p", "prelu"),
             _layer("p1", "prelu", shared=True, start=0.1)),
    _network("convnext-2d", 2, "3x16x12", "cross_entropy",
             _layer("stem", "conv", filters=24, kernel=4, stride=4),
             _layer("n0", "layer_norm", epsilon=1e-6),
             _layer("dw", "conv", filters=24, kernel=7, pad=3, groups=24),
             _layer("n1", "layer_norm", epsilon=1e-6),
             _layer("up", "conv", filters=96, kernel=1),
             _layer("a1", "gelu"),
             _layer("down", "conv", filters=24, kernel=1),
             _layer("gamma", "affine", bias=False, weight_value=0.1),
             _layer("sum", "add", **{"from": ["gamma", "n0"]}),
             _layer("n2", "layer_norm", affine=False),
             _layer("g", "global_average_pool"),
             _layer("fc", "dense", features=5)),
    _network("squeeze-excite-2d", 3, "3x12x11", "cross_entropy",
             _layer("c1", "conv", filters=16, kernel=3, pad=1),
             _layer("b1", "batch_norm"),
             _layer("a1", "hard_swish"),
             _layer("dw", "conv", filters=16, kernel=3, pad=1, groups=16),
             _layer("a2", "relu6"),
             _layer("s", "global_average_pool"),
             _layer("f1", "conv", filters=4, kernel=1),
             _layer("a3", "silu"),
             _layer("f2", "conv", filters=16, kernel=1),
             _layer("a4", "hard_sigmoid"),
             _layer("se", "multiply", **{"from": ["a2", "a4"]}),
             _layer("c2", "conv", filters=16, kernel=1),
             _layer("sum", "add", **{"from": ["c2", "a1"]}),
             _layer("psi", "conv", filters=1, kernel=1),
             _layer("a5", "sigmoid"),
             _layer("gate", "multiply", **{"from": ["sum", "a5"]}),
             _layer("self", "multiply", **{"from": ["gate", "sum"]}),
             _layer("g", "global_average_pool"),
             _layer("fc", "dense", features=7)),
    _network("resizes-3d", 2, "3x5x6x7", "mean_squared_error",
             _layer("c1", "conv", filters=6, kernel=3, pad=1),
             _layer("r1", "resize", factor=2),
             _layer("c2", "conv", filters=6, kernel=2, stride=2),
             _layer("r2", "resize", mode="linear", factor=2),
             _layer("s1", "slice", first=[0, 1, 2], size=[9, 0, 6], first_channel=1, channels=4),
             _layer("r3", "resize", mode="linear", align_corners=True, size=[7, 13, 5]),
             _layer("p1", "pad", pad=[[1, 0], [2, 1], [0, 2]], mode="edge"),
             _layer("r4", "resize", size=[5, 7, 9]),
             _layer("k", "affine", trainable=False, weight_value=0.5, bias_value=-0.25),
             _layer("c3", "conv", filters=3, kernel=3)),
    _network("resizes-2d", 2, "3x9x7", "cross_entropy",
             _layer("p0", "pad", pad=[[2, 1], [3, 2]], mode="reflect"),
             _layer("c1", "conv", filters=8, kernel=3),
             _layer("p1", "pad", pad=[[0, 2], [1, 0]]),
             _layer("s1", "slice", step=2),
             _layer("g", "global_average_pool"),
             _layer("c2", "conv", filters=8, kernel=1),
             _layer("all", "resize", mode="linear", size=[6, 6]),
             _layer("cat", "concat", **{"from": ["all", "s1"]}),
             _layer("r2", "resize", mode="linear", align_corners=True, factor=2),
             _layer("r3", "resize", mode="linear", factor=1.5),
             _layer("c3", "conv", filters=4, kernel=1)),
    _network("shuffles-2d", 2, "6x12x10", "mean_squared_error",
             _layer("c1", "conv", filters=12, kernel=3, pad=1, groups=3),
             _layer("s1", "channel_shuffle", groups=3),
             _layer("dw", "conv", filters=12, kernel=3, pad=1, groups=12),
             _layer("u1", "pixel_unshuffle", factor=2),
             _layer("a1", "relu"),
             _layer("c2", "conv", filters=36, kernel=1),
             _layer("s2", "pixel_shuffle", factor=[2, 3]),
             _layer("k", "scale", factor=0.5, offset=-0.25),
             _layer("c3", "conv", filters=2, kernel=1)),
    _network("shuffles-3d", 2, "4x6x4x9", "cross_entropy",
             _layer("u1", "pixel_unshuffle", factor=[2, 1, 3]),
             _layer("c1", "conv", filters=24, kernel=3, pad=1),
             _layer("s1", "channel_shuffle", groups=4),
             _layer("p1", "pixel_shuffle", factor=[1, 2, 2]),
             _layer("a1", "leaky_relu"),
             _layer("m", "global_max_pool"),
             _layer("f", "flatten"),
             _layer("fc", "dense", features=9),
             _layer("b", "batch_norm"),
             _layer("a2", "relu"),
             _layer("fc2", "dense", features=5)),
    _network("channel-attention-2d", 2, "3x9x11", "mean_squared_error",
             _layer("c1", "conv", filters=16, kernel=3, pad=1),
             _layer("a1", "relu"),
             _layer("gm", "global_max_pool"),
             _layer("ga", "global_average_pool", **{"from": "a1"}),
             _layer("both", "add", **{"from": ["gm", "ga"]}),
             _layer("sg", "softmax"),
             _layer("gate", "multiply", **{"from": ["a1", "sg"]}),
             _layer("c2", "conv", filters=4, kernel=3)),
    _network("lines-1d", 3, "2x61", "mean_squared_error",
             _layer("c1", "conv", filters=8, kernel=7, stride=2, pad=3),
             _layer("b1", "batch_norm"),
             _layer("a1", "relu"),
             _layer("p1", "max_pool", kernel=3, stride=2, pad=1),
             _layer("c2", "conv", filters=12, kernel=[3], dilation=2, pad=[[2, 1]], groups=2),
             _layer("i1", "instance_norm"),
             _layer("a2", "silu"),
             _layer("p2", "average_pool", kernel=2),
             _layer("r1", "resize", mode="linear", factor=2),
             _layer("t1", "conv_transpose", filters=6, kernel=4, stride=2, pad=1),
             _layer("s1", "slice", first=1, size=20),
             _layer("u", "pixel_unshuffle", factor=2),
             _layer("d1", "pad", pad=[[1, 2]], mode="reflect"),
             _layer("c3", "conv", filters=3, kernel=3)),
    _network("classes-1d", 4, "3x40", "cross_entropy",
             _layer("c1", "conv", filters=8, kernel=5, pad="same"),
             _layer("a1", "relu"),
             _layer("m", "global_max_pool"),
             _layer("fc", "dense", features=6)),
    _network("wide-channels", 2, "48x6x7x8", "cross_entropy",
             _layer("c1", "conv", filters=80, kernel=3, pad=1, groups=2),
             _layer("b1", "batch_norm"),
             _layer("r1", "relu"),
             _layer("c2", "conv", filters=48, kernel=3, pad=1, bias=False),
             _layer("sum", "add", **{"from": ["c2", "input"]}),
             _layer("t1", "conv_transpose", filters=3, kernel=[1, 3, 3], stride=[1, 2, 2], pad=[0, 1, 1])),
]


class _Random:
    """A chain of layers with windows at random that fit the extents."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.dims = self.random.choice((2, 3))
        high = 14 if self.dims == 2 else 9
        self.extents = [self.random.randint(4, high) for _ in range(self.dims)]
        self.channels = self.random.choice((1, 2, 3, 4, 8))
        self.layers = []
        self.shape = "x".join(map(str, [self.channels, *self.extents]))

    def add(self, op, **keys):
        self.layers.append(_layer(f"l{len(self.layers)}", op, **keys))

    def window(self, most_pad):
        """Kernel, stride, dilation and pad that leave at least one output, and the extents of the outputs."""
        while True:
            kernel = [self.random.choice((1, 2, 3, 3, 5)) for _ in self.extents]
            stride = [self.random.choice((1, 1, 1, 2, 3)) for _ in self.extents]
            dilation = [self.random.choice((1, 1, 1, 2)) for _ in self.extents]
            pad = [[self.random.randint(0, min(most_pad, (k - 1) * d // 2 + 1)) if k > 1 else 0 for _ in "lh"]
                   for k, d in zip(kernel, dilation)]
            outputs = [(e + sum(p) - d * (k - 1) - 1) // s + 1
                       for e, p, d, k, s in zip(self.extents, pad, dilation, kernel, stride)]
            if min(outputs) >= 1:
                return {"kernel": kernel, "stride": stride, "dilation": dilation, "pad": pad}, outputs

    def add_conv(self):
        keys, self.extents = self.window(most_pad=3)
        groups = self.random.choice([g for g in (1, 1, 2, 3, 4, self.channels) if self.channels % g == 0])
        filters = groups * self.random.choice((1, 2, 3, 5, 8, 16))
        self.add("conv", filters=filters, groups=groups, bias=self.random.random() < 0.6, **keys)
        self.channels = filters

    def add_transposed(self):
        if max(self.extents) > 9:
            return
        keys, _ = self.window(most_pad=0)
        keys["output_padding"] = [self.random.randint(0, s - 1) for s in keys["stride"]]
        self.extents = [(e - 1) * s + d * (k - 1) + 1 + o for e, s, d, k, o in zip(
            self.extents, keys["stride"], keys["dilation"], keys["kernel"], keys["output_padding"])]
        groups = self.random.choice([g for g in (1, 1, 2, self.channels) if self.channels % g == 0])
        filters = groups * self.random.choice((1, 2, 3, 8))
        self.add("conv_transpose", filters=filters, groups=groups, bias=self.random.random() < 0.6, **keys)
        self.channels = filters

    def add_pool(self):
        keys, outputs = self.window(most_pad=1)
        if max(keys["dilation"]) > 1:
            return
        if any(max(pad) >= kernel for pad, kernel in zip(keys["pad"], keys["kernel"])):
            return
        self.extents = outputs
        if self.random.random() < 0.5:
            self.add("max_pool", **keys)
        else:
            self.add("average_pool", count_include_pad=self.random.random() < 0.5, **keys)

    def add_activation(self):
        op = self.random.choice(("relu", "leaky_relu", "tanh", "sigmoid", "softmax", "scale", "batch_norm"))
        if op == "batch_norm" and max(self.extents) < 3:
            return
        keys = {"leaky_relu": {"slope": 0.1}, "scale": {"factor": 1.7}}.get(op, {})
        self.add(op, **keys)

    def network(self, name):
        for _ in range(self.random.randint(2, 4)):
            self.random.choice((self.add_conv, self.add_conv, self.add_transposed))()
            for _ in range(self.random.randint(0, 2)):
                self.random.choice((self.add_pool, self.add_activation, self.add_activation))()
        self.add("conv", filters=self.random.choice((2, 3, 5)), kernel=1)
        if self.random.random() < 0.3:
            self.add("flatten")
            self.add("dense", features=5)
        loss = self.random.choice(("mean_squared_error", "mean_absolute_error", "cross_entropy", "soft_dice"))
        return _network(name, self.random.choice((2, 3)), self.shape, loss, *self.layers)


def odd_networks(count=60):
    return BY_HAND + [_Random(seed).network(f"random-{seed}") for seed in range(count)]
