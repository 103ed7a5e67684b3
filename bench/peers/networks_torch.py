"""Orthant's zoo in PyTorch. state_dict() has the names and shapes of Orthant's weight files.

Shared by the benchmark against PyTorch (bench/peers) and by the tests that compare numbers (tests/torch).
"""

import math

import torch
from torch import nn
from torch.nn import functional


class CosmoFlow(nn.Module):
    """Oyama et al. 2020: seven convolutions, average pools as long as two cells per dim are left, three dense layers."""

    filters = (16, 32, 64, 128, 256, 256, 256)

    def __init__(self, sample, batch_norm=False, dropout=0.2, outputs=4):
        super().__init__()
        channels, extents = sample[0], list(sample[1:])
        self.pools = []
        for i, filters in enumerate(self.filters, start=1):
            stride = 2 if i == 4 else 1
            self.add_module(f"conv{i}", nn.Conv3d(channels, filters, 3, stride, 1, bias=False))
            if batch_norm:
                self.add_module(f"bn{i}", nn.BatchNorm3d(filters, momentum=0.001))
            extents = [(extent - 1) // stride + 1 for extent in extents]
            self.pools.append(min(extents) > (4 if i < 4 else 2))
            if self.pools[-1]:
                extents = [(extent + 1) // 2 for extent in extents]
            channels = filters
        self.fc1 = nn.Linear(channels * math.prod(extents), 2048)
        self.fc2 = nn.Linear(2048, 256)
        self.fc3 = nn.Linear(256, outputs)
        self.batch_norm = batch_norm
        self.dropout = dropout

    def forward(self, x):
        for i, pool in enumerate(self.pools, start=1):
            x = getattr(self, f"conv{i}")(x)
            if self.batch_norm:
                x = getattr(self, f"bn{i}")(x)
            x = functional.leaky_relu(x, 0.01)
            if pool:
                x = functional.avg_pool3d(x, 3, 2, 1)
        x = x.flatten(1)
        x = functional.leaky_relu(self.fc1(self._drop(x)), 0.01)
        x = functional.leaky_relu(self.fc2(self._drop(x)), 0.01)
        return self.fc3(self._drop(x))

    def _drop(self, x):
        return functional.dropout(x, self.dropout, self.training)


class CosmoFlowMlperf(nn.Module):
    """MLPerf HPC: five convolutions with max pools, 1.2 tanh at the end."""

    def __init__(self, sample, dropout=0.5, outputs=4):
        super().__init__()
        channels, extents = sample[0], list(sample[1:])
        for i, filters in enumerate((32, 64, 128, 256, 512), start=1):
            self.add_module(f"conv{i}", nn.Conv3d(channels, filters, 3, 1, 1))
            extents = [extent // 2 for extent in extents]
            channels = filters
        self.fc1 = nn.Linear(channels * math.prod(extents), 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, outputs)
        self.dropout = dropout

    def forward(self, x):
        for i in range(1, 6):
            x = functional.max_pool3d(functional.leaky_relu(getattr(self, f"conv{i}")(x), 0.3), 2)
        x = x.flatten(1)
        x = functional.dropout(functional.leaky_relu(self.fc1(x), 0.3), self.dropout, self.training)
        x = functional.dropout(functional.leaky_relu(self.fc2(x), 0.3), self.dropout, self.training)
        return 1.2 * torch.tanh(self.fc3(x))


class UNetBlock(nn.Module):
    """Convolution, normalisation, ReLU; twice. On the way up a transposed convolution and the skip come first."""

    def __init__(self, channels, first, second, batch_norm, upsampled=None):
        super().__init__()
        if upsampled is not None:
            self.deconv = nn.ConvTranspose3d(upsampled, upsampled, 2, 2, bias=False)
        self.conv1 = nn.Conv3d(channels, first, 3, padding=1, bias=not batch_norm)
        self.conv2 = nn.Conv3d(first, second, 3, padding=1, bias=not batch_norm)
        if batch_norm:
            self.bn1 = nn.BatchNorm3d(first)
            self.bn2 = nn.BatchNorm3d(second)
        self.batch_norm = batch_norm

    def forward(self, x, skip=None):
        if skip is not None:
            x = torch.cat([self.deconv(x), skip], 1)
        for i in "12":
            x = getattr(self, "conv" + i)(x)
            if self.batch_norm:
                x = getattr(self, "bn" + i)(x)
            x = functional.relu(x)
        return x


class UNet3d(nn.Module):
    """Three levels down and up; concat order: upsampled, skip."""

    def __init__(self, sample, width=32, classes=3, batch_norm=True):
        super().__init__()
        w = width
        self.down1 = UNetBlock(sample[0], w, 2 * w, batch_norm)
        self.down2 = UNetBlock(2 * w, 2 * w, 4 * w, batch_norm)
        self.down3 = UNetBlock(4 * w, 4 * w, 8 * w, batch_norm)
        self.bottom = UNetBlock(8 * w, 8 * w, 16 * w, batch_norm)
        self.up3 = UNetBlock(24 * w, 8 * w, 8 * w, batch_norm, upsampled=16 * w)
        self.up2 = UNetBlock(12 * w, 4 * w, 4 * w, batch_norm, upsampled=8 * w)
        self.up1 = UNetBlock(6 * w, 2 * w, 2 * w, batch_norm, upsampled=4 * w)
        self.head = nn.Conv3d(2 * w, classes, 1, bias=False)

    def forward(self, x):
        skip1 = self.down1(x)
        skip2 = self.down2(functional.max_pool3d(skip1, 2))
        skip3 = self.down3(functional.max_pool3d(skip2, 2))
        x = self.bottom(functional.max_pool3d(skip3, 2))
        return self.head(self.up1(self.up2(self.up3(x, skip3), skip2), skip1))


def _shortcut(channels, filters, stride):
    if stride == 1 and channels == filters:
        return None
    return nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, channels, middle, stride, width):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, middle, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, middle, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(middle)
        self.downsample = _shortcut(channels, middle, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, channels, middle, stride, width):
        super().__init__()
        wide = middle * width
        self.conv1 = nn.Conv2d(channels, wide, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.conv3 = nn.Conv2d(wide, 4 * middle, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * middle)
        self.downsample = _shortcut(channels, 4 * middle, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Stride in the 3x3 convolution of a bottleneck; `width` widens that convolution only."""

    def __init__(self, sample, block, depths, width=1, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(sample[0], 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for stage, depth in enumerate(depths):
            blocks = []
            for i in range(depth):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(block(channels, 64 << stage, stride, width))
                channels = block.expansion * (64 << stage)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Vgg16(nn.Module):
    stages = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))

    def __init__(self, sample, dropout=0.5, classes=1000):
        super().__init__()
        layers, channels, (height, width) = [], sample[0], sample[1:]
        for filters, count in self.stages:
            for _ in range(count):
                layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU()]
                channels = filters
            layers.append(nn.MaxPool2d(2))
            height, width = height // 2, width // 2
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(channels * height * width, 4096), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4096, classes))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class AlexNet(nn.Module):
    """One column, as in mu-cuDNN."""

    def __init__(self, sample, dropout=0.5, classes=1000, conv4=384):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(sample[0], 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, conv4, 3, padding=1), nn.ReLU(),
            nn.Conv2d(conv4, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2))
        height, width = self.features(torch.zeros(1, *sample)).shape[2:]
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * height * width, 4096), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def _resnet(block, depths, **defaults):
    return lambda sample, **settings: ResNet(sample, block, depths, **{**defaults, **settings})


ZOO = {
    "cosmoflow": CosmoFlow,
    "cosmoflow-mlperf": CosmoFlowMlperf,
    "unet3d": UNet3d,
    "resnet18": _resnet(BasicBlock, (2, 2, 2, 2)),
    "resnet50": _resnet(Bottleneck, (3, 4, 6, 3)),
    "resnet152": _resnet(Bottleneck, (3, 8, 36, 3)),
    "wide-resnet50": _resnet(Bottleneck, (3, 4, 6, 3), width=2),
    "vgg16": Vgg16,
    "alexnet": AlexNet,
}


def make(name, sample, **settings):
    """The network `name` for samples of shape `sample` (C, [D,] H, W)."""
    return ZOO[name](sample, **settings)


def loss_of(name):
    """The zoo's loss: mean squared error for CosmoFlow, cross-entropy for the rest."""
    return functional.mse_loss if name.startswith("cosmoflow") else functional.cross_entropy


def random_target(name, batch, sample, generator=None):
    """Values for a regression, labels for a classification or a segmentation."""
    if name.startswith("cosmoflow"):
        return torch.rand(batch, 4, generator=generator) * 2 - 1
    if name == "unet3d":
        return torch.randint(3, (batch, *sample[1:]), generator=generator)
    return torch.randint(1000, (batch,), generator=generator)
