"""Networks as people write them in PyTorch, small, to be exported to ONNX."""

import torch
from torch import nn
from torch.nn import functional as F

from onnx_segmentation import UNet3dInstance, VNet, UNetBilinear, PaddedUNet, AttentionUNet, SegResNet


def conv_of(dims):
    return {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dims]


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride=1, groups=1, squeeze=False):
        super().__init__()
        outputs = 2 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.se = SqueezeExcite(outputs) if squeeze else None
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.se is not None:
            y = self.se(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class SqueezeExcite(nn.Module):
    """As in SENet: pool, flatten, two dense layers, sigmoid."""

    def __init__(self, channels, reduction=4):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(channels, channels // reduction, bias=False), nn.ReLU(inplace=True),
                                nn.Linear(channels // reduction, channels, bias=False), nn.Sigmoid())

    def forward(self, x):
        b, c = x.shape[:2]
        gate = F.adaptive_avg_pool2d(x, 1).view(b, c)
        return x * self.fc(gate).view(b, c, 1, 1).expand_as(x)


class ResNet(nn.Module):
    def __init__(self, groups=1, squeeze=False):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        self.layer1 = nn.Sequential(Bottleneck(16, 8, 1, groups, squeeze), Bottleneck(16, 8, 1, groups, squeeze))
        self.layer2 = nn.Sequential(Bottleneck(16, 16, 2, groups, squeeze))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layer2(self.layer1(self.stem(x)))), 1))


class Vgg(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for width in (8, 8, "M", 16, 16, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(True)]
                channels = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(16 * 4 * 4, 32), nn.ReLU(True), nn.Dropout(0.0), nn.Linear(32, 5))

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.view(x.size(0), -1))


class DenseNet(nn.Module):
    def __init__(self, growth=8):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.blocks, channels = nn.ModuleList(), 16
        for block in range(2):
            layers = nn.ModuleList()
            for _ in range(3):
                layers.append(nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 16, 1, bias=False),
                                            nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, growth, 3, padding=1, bias=False)))
                channels += growth
            self.blocks.append(layers)
            if block == 0:
                self.transition = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False),
                                                nn.AvgPool2d(2, 2))
                channels //= 2
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, 7)

    def forward(self, x):
        features = [self.conv0(x)]
        for i, block in enumerate(self.blocks):
            for layer in block:
                features.append(layer(torch.cat(features, 1)))
            x = torch.cat(features, 1)
            if i == 0:
                features = [self.transition(x)]
        return self.classifier(F.relu(self.norm(x)).mean([2, 3]))


class CosmoFlow(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (8, 16, 24)
        self.convs = nn.ModuleList(nn.Conv3d(i, o, 3, padding=1, bias=False) for i, o in zip((4, *widths), widths))
        self.norms = nn.ModuleList(nn.BatchNorm3d(width) for width in widths)
        self.fc1, self.fc2, self.fc3 = nn.Linear(24 * 8, 32), nn.Linear(32, 16), nn.Linear(16, 4)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.avg_pool3d(F.leaky_relu(norm(conv(x)), 0.01), 3, 2, 1)
        x = torch.flatten(x, 1)
        return self.fc3(F.leaky_relu(self.fc2(F.leaky_relu(self.fc1(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, expand, stride, act):
        super().__init__()
        hidden = inputs * expand
        self.use = stride == 1 and inputs == outputs
        self.expand = nn.Sequential(nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act())
        self.depthwise = nn.Sequential(nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), act())
        self.se_reduce = nn.Conv2d(hidden, hidden // 4, 1)
        self.se_expand = nn.Conv2d(hidden // 4, hidden, 1)
        self.gate = nn.Hardsigmoid() if act is nn.Hardswish else nn.Sigmoid()
        self.act = act()
        self.project = nn.Sequential(nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        s = F.adaptive_avg_pool2d(y, 1)
        y = y * self.gate(self.se_expand(self.act(self.se_reduce(s))))
        y = self.project(y)
        return x + y if self.use else y


class EfficientNet(nn.Module):
    def __init__(self, act=nn.SiLU):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), act())
        self.blocks = nn.Sequential(InvertedResidual(8, 12, 2, 2, act), InvertedResidual(12, 12, 4, 1, act))
        self.head = nn.Sequential(nn.Conv2d(12, 32, 1, bias=False), nn.BatchNorm2d(32), act())
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(32, 6))

    def forward(self, x):
        return self.classifier(self.head(self.blocks(self.stem(x))).mean((2, 3)))


class LayerNorm2d(nn.Module):
    """ConvNeXt's for channels in front."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels)), eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 2, 2), LayerNorm2d(12))
        self.stage1 = nn.Sequential(ConvNeXtBlock(12), ConvNeXtBlock(12))
        self.down = nn.Sequential(LayerNorm2d(12), nn.Conv2d(12, 16, 2, 2))
        self.stage2 = ConvNeXtBlock(16)
        self.norm = nn.LayerNorm(16, eps=1e-6)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stage2(self.down(self.stage1(self.stem(x))))
        return self.head(self.norm(x.mean([-2, -1])))


def channel_shuffle(x, groups):
    b, c, h, w = x.shape
    return x.view(b, groups, c // groups, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.branch = nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                                    nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8),
                                    nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.grouped = nn.Conv2d(16, 16, 1, groups=4)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = self.stem(x)
        a, b = x.chunk(2, dim=1)
        x = channel_shuffle(torch.cat((a, self.branch(b)), dim=1), 2)
        x = channel_shuffle(self.grouped(x), 4)
        return self.fc(torch.tanh(x).mean([2, 3]))


class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        unit = lambda i, o, k, d: nn.Sequential(nn.Conv2d(i, o, k, padding=0 if k == 1 else d, dilation=d, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.backbone = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 16, 3, 1, 2, dilation=2), nn.ReLU())
        self.aspp = nn.ModuleList([unit(16, 8, 1, 1), unit(16, 8, 3, 2), unit(16, 8, 3, 3)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 8, 1), nn.ReLU())
        self.project = unit(32, 16, 1, 1)
        self.classifier = nn.Conv2d(16, 3, 1)

    def forward(self, x):
        size = x.shape[-2:]
        f = self.backbone(x)
        pooled = F.interpolate(self.pool(f), size=f.shape[-2:], mode="bilinear", align_corners=False)
        y = self.project(torch.cat([one(f) for one in self.aspp] + [pooled], dim=1))
        return F.interpolate(self.classifier(y), size=size, mode="bilinear", align_corners=False)


class Cnn1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, 8, 7, 2, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
                                 nn.Conv1d(8, 16, 5, padding=2), nn.GroupNorm(2, 16), nn.ELU(), nn.AdaptiveAvgPool1d(1))
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))

    def forward(self, x):
        return self.fc(self.net(x))


class DeepSupervision(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1), nn.Conv2d(20, 8, 3, padding=1)
        self.side, self.main = nn.Conv2d(12, 2, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.silu(self.c1(x))
        b = F.silu(self.c2(F.max_pool2d(a, 2)))
        up = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.main(F.silu(self.c3(torch.cat([a, up], 1)))), self.side(b)


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(1, 16, 5, padding=2), nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        x = F.gelu(self.conv1(x))
        return self.shuffle(self.conv3(torch.tanh(self.conv2(x))))


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2)
        self.b1 = nn.Conv2d(12, 8, 1)
        self.b2 = nn.Sequential(nn.Conv2d(12, 6, 1), nn.ReLU(), nn.Conv2d(6, 8, (1, 7), padding=(0, 3)), nn.ReLU(), nn.Conv2d(8, 8, (7, 1), padding=(3, 0)))
        self.pool = nn.Sequential(nn.AvgPool2d(3, 1, 1), nn.Conv2d(12, 8, 1))
        self.down = nn.Conv2d(24, 12, 3, 2, bias=False)
        self.bn = nn.BatchNorm2d(36, eps=0.001)
        self.fc = nn.Linear(36, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, ceil_mode=True)
        x = F.relu(torch.cat([self.b1(x), self.b2(x), self.pool(x)], 1))
        x = self.bn(torch.cat([self.down(x), F.max_pool2d(x, 3, 2)], 1))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).reshape(x.shape[0], -1))


class SqueezeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2)
        self.squeeze, self.e1, self.e3 = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 8, 1), nn.Conv2d(4, 8, 3, padding=1)
        self.avg = nn.AvgPool2d(2, 2, ceil_mode=True)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Conv2d(16, 6, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), kernel_size=3, stride=2, ceil_mode=True)
        s = F.relu(self.squeeze(x))
        x = self.avg(torch.cat([F.relu(self.e1(s)), F.relu(self.e3(s))], 1))
        return torch.flatten(self.classifier(x), 1)


class CroppedUNet(nn.Module):
    """The first U-Net: convolutions without padding, skips cropped in the middle; reflected border."""

    def __init__(self):
        super().__init__()
        self.pad = nn.ReflectionPad2d(3)
        self.c1, self.c2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 12, 3)
        self.up, self.c3 = nn.ConvTranspose2d(12, 8, 2, 2), nn.Conv2d(16, 8, 3)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = torch.sigmoid(self.c1(self.pad(x)))
        b = self.up(torch.sigmoid(self.c2(F.avg_pool2d(a, 2))))
        top, left = (a.shape[2] - b.shape[2]) // 2, (a.shape[3] - b.shape[3]) // 2
        a = a[:, :, top:top + b.shape[2], left:left + b.shape[3]]
        return self.out(torch.sigmoid(self.c3(torch.cat([a, b], 1))))


class Res2Net(nn.Module):
    """Channels split, a sum from part to part, gated linear units, a stack that is averaged."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(3))
        self.glu = nn.Conv2d(16, 16, 1)
        self.heads = nn.ModuleList(nn.Conv2d(8, 3, 1) for _ in range(3))
        self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1))

    def forward(self, x):
        parts = torch.split(torch.tanh(self.stem((x - self.mean) / 0.5)), 4, 1)
        outputs, y = [parts[0]], parts[1]
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = torch.tanh(norm(conv(y)))
            outputs.append(y)
            if i < 2:
                y = y + parts[i + 2]
        a, b = self.glu(torch.cat(outputs, 1)).chunk(2, 1)
        y = a * torch.sigmoid(b)
        return torch.stack([head(y) for head in self.heads]).mean(0)


class ChannelAttention(nn.Module):
    """CBAM's first half in 3-D; its pools over all space."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(1, 8, 3, padding=1)
        self.norm = nn.InstanceNorm3d(8)
        self.avg = nn.Sequential(nn.Conv3d(8, 4, 1, bias=False), nn.ReLU(), nn.Conv3d(4, 8, 1, bias=False))
        self.max = nn.Sequential(nn.Conv3d(8, 4, 1, bias=False), nn.ReLU(), nn.Conv3d(4, 8, 1, bias=False))
        self.out = nn.Conv3d(8, 1, 1)

    def forward(self, x):
        x = F.silu(self.norm(self.conv(x)))
        gate = torch.sigmoid(self.avg(F.adaptive_avg_pool3d(x, 1)) + self.max(F.adaptive_max_pool3d(x, 1)))
        return self.out(x * gate + x * (1 - gate) * 0.5)


class LinkNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1, self.e2 = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1)
        self.d2 = nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)
        self.d1 = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, groups=2)
        self.n2 = nn.BatchNorm2d(8)

    def forward(self, x):
        a = F.relu6(self.e1(x) * 2 + 1)
        b = F.hardswish(self.e2(a))
        return torch.softmax(self.d1(F.relu(self.n2(self.d2(b)) + a)), dim=1)


# name: (network, shape of a mini-batch, loss, further settings)
NETWORKS = {
    "resnet": (ResNet, (4, 3, 32, 32), "cross_entropy"),
    "vgg": (Vgg, (2, 3, 16, 16), "cross_entropy"),
    "densenet": (DenseNet, (4, 3, 16, 16), "cross_entropy"),
    "unet3d-instance": (UNet3dInstance, (2, 1, 16, 16, 8), "cross_entropy"),
    "unet3d-instance-bare": (lambda: UNet3dInstance(affine=False), (2, 1, 8, 16, 8), "soft_dice"),
    "vnet": (VNet, (2, 1, 12, 12, 12), "cross_entropy"),
    "unet-bilinear": (UNetBilinear, (2, 3, 21, 27), "cross_entropy"),
    "unet-corners": (lambda: UNetBilinear(True), (2, 3, 19, 22), "cross_entropy"),
    "unet-padded": (PaddedUNet, (2, 1, 19, 23), "mean_squared_error"),
    "attention-unet": (AttentionUNet, (2, 1, 12, 12, 12), "cross_entropy"),
    "segresnet": (SegResNet, (2, 2, 12, 12, 12), "cross_entropy"),
    "cosmoflow": (CosmoFlow, (2, 4, 16, 16, 16), "mean_squared_error"),
    "efficientnet": (EfficientNet, (4, 3, 24, 24), "cross_entropy"),
    "mobilenet-v3": (lambda: EfficientNet(nn.Hardswish), (4, 3, 24, 24), "cross_entropy"),
    "convnext": (ConvNeXt, (2, 3, 24, 24), "cross_entropy"),
    "shufflenet": (ShuffleNet, (2, 3, 12, 12), "cross_entropy"),
    "deeplab": (DeepLab, (2, 3, 26, 22), "cross_entropy"),
    "cnn1d": (Cnn1d, (4, 2, 64), "cross_entropy"),
    "deep-supervision": (DeepSupervision, (2, 1, 16, 16), "cross_entropy", "main"),
    "deep-supervision-side": (DeepSupervision, (2, 1, 16, 16), "cross_entropy", "side"),
    "super-resolution": (SuperResolution, (2, 1, 12, 10), "mean_absolute_error"),
    "inception": (Inception, (2, 3, 35, 35), "cross_entropy"),
    "squeezenet": (SqueezeNet, (2, 3, 30, 30), "cross_entropy"),
    "unet-cropped": (CroppedUNet, (2, 1, 20, 18), "cross_entropy"),
    "res2net": (Res2Net, (2, 3, 12, 12), "mean_squared_error"),
    "channel-attention": (ChannelAttention, (2, 1, 8, 8, 8), "mean_squared_error"),
    "seresnext": (lambda: ResNet(groups=4, squeeze=True), (4, 3, 32, 32), "cross_entropy"),
    "linknet": (LinkNet, (2, 3, 16, 16), "mean_squared_error"),
}
