"""Makes the files of tests/torch/onnx_files, with PyTorch 2's newer exporter: for whoever has it. Tests only read them.

usage: make_onnx_files.py FOLDER
"""

import json
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from onnx_networks import ConvNeXtBlock, LayerNorm2d, SqueezeExcite, channel_shuffle


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.GroupNorm(2, 4)
        self.se = SqueezeExcite(4, 2)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = F.hardswish(self.norm1(self.conv1(x)))
        x = F.relu(self.se(self.norm2(self.conv2(x))) + x)
        return self.fc(channel_shuffle(x, 2).mean((2, 3)))


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm, self.block = nn.Conv2d(1, 4, 4, 4), LayerNorm2d(4), ConvNeXtBlock(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.block(self.norm(self.stem(x))).mean([-2, -1]))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.norm, self.act = nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.PReLU(4)
        self.low, self.up = nn.Conv3d(4, 4, 3, 2, 1), nn.Upsample(scale_factor=2, mode="trilinear", align_corners=False)
        self.out = nn.Conv3d(8, 2, 1)

    def forward(self, x):
        a = self.act(self.norm(self.down(x)))
        return F.adaptive_avg_pool3d(self.out(torch.cat([a, self.up(F.silu(self.low(a)))], 1)), 1).flatten(1)


class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(2, 4, 5, 2, 2), nn.BatchNorm1d(4)
        self.fc = nn.Linear(4 * 8, 3)

    def forward(self, x):
        return self.fc(torch.flatten(F.gelu(self.norm(self.conv(x))), 1))


NETWORKS = {"residual": (Residual, (2, 3, 8, 8)), "convnext": (ConvNeXt, (1, 1, 16, 16)), "unet": (UNet, (2, 1, 8, 8, 8)),
            "series": (Series, (2, 2, 16))}


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = {}
    for name, (make, shape) in NETWORKS.items():
        torch.manual_seed(1)
        model = make().eval()
        x = torch.from_numpy(numpy.random.RandomState(3).standard_normal(shape).astype("f4"))
        torch.onnx.export(model, (x,), str(folder / f"{name}.onnx"), dynamo=True, opset_version=18, external_data=False, verbose=False,
                          dynamic_shapes=({0: torch.export.Dim("batch")},) if name == "unet" else None)
        with torch.no_grad():
            output = model.double()(x.double())
        expected[name] = {"shape": shape, "output": [[round(value, 7) for value in row] for row in output.tolist()]}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
