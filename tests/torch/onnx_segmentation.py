"""Networks that segment images and volumes, as people write them in PyTorch, to be exported to ONNX."""

import torch
from torch import nn
from torch.nn import functional as F


class UNet3dInstance(nn.Module):
    """nnU-Net's blocks: convolution, instance normalisation, leaky ReLU; transposed convolutions up."""

    def __init__(self, affine=True, norm=None):
        super().__init__()
        norm = norm or (lambda channels: nn.InstanceNorm3d(channels, affine=affine))
        block = lambda i, o, s=1: nn.Sequential(nn.Conv3d(i, o, 3, s, 1), norm(o), nn.LeakyReLU(0.01, inplace=True))
        self.down0 = nn.Sequential(block(1, 8), block(8, 8))
        self.down1 = nn.Sequential(block(8, 16, 2), block(16, 16))
        self.bottom = nn.Sequential(block(16, 24, 2), block(24, 24))
        self.up1 = nn.ConvTranspose3d(24, 16, 2, 2, bias=False)
        self.dec1 = block(32, 16)
        self.up0 = nn.ConvTranspose3d(16, 8, 2, 2, bias=False)
        self.dec0 = block(16, 8)
        self.head = nn.Conv3d(8, 3, 1)

    def forward(self, x):
        a = self.down0(x)
        b = self.down1(a)
        y = self.bottom(b)
        y = self.dec1(torch.cat((self.up1(y), b), dim=1))
        y = self.dec0(torch.cat((self.up0(y), a), dim=1))
        return self.head(y)


class VNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv3d(1, 8, 5, padding=2)
        self.bn = nn.BatchNorm3d(8)
        self.act0 = nn.PReLU(8)
        self.down = nn.Conv3d(8, 16, 2, 2)
        self.act1 = nn.ELU(inplace=True)
        self.conv1 = nn.Conv3d(16, 16, 3, padding=1)
        self.act2 = nn.PReLU()
        self.up = nn.ConvTranspose3d(16, 8, 2, 2)
        self.act3 = nn.ELU()
        self.conv2 = nn.Conv3d(16, 16, 3, padding=1)
        self.out = nn.Conv3d(16, 2, 1)

    def forward(self, x):
        first = self.act0(torch.add(self.bn(self.inp(x)), torch.cat([x] * 8, 1)))
        low = self.act1(self.down(first))
        low = self.act2(self.conv1(low) + low)
        up = torch.cat((self.act3(self.up(low)), first), 1)
        return self.out(torch.add(self.conv2(up), up))


class UNetBilinear(nn.Module):
    """Sizes that do not divide: what comes up takes the size of its skip."""

    def __init__(self, align_corners=False):
        super().__init__()
        self.align_corners = align_corners
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        self.c1, self.c2, self.c3 = block(3, 8), block(8, 12), block(12, 16)
        self.u2, self.u1 = block(28, 12), block(20, 8)
        self.out = nn.Conv2d(8, 4, 1)

    def up(self, x, skip):
        x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=self.align_corners)
        return torch.cat([skip, x], 1)

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(F.max_pool2d(a, 2))
        c = self.c3(F.max_pool2d(b, 2))
        return self.out(self.u1(self.up(self.u2(self.up(c, b)), a)))


class PaddedUNet(nn.Module):
    """milesial's: bilinear by two with corners aligned, then padded to the skip's size."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.c3 = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        a = torch.tanh(self.c1(x))
        b = self.up(torch.tanh(self.c2(F.avg_pool2d(a, 2))))
        y, z = a.size()[2] - b.size()[2], a.size()[3] - b.size()[3]
        b = F.pad(b, [z // 2, z - z // 2, y // 2, y - y // 2])
        return self.c3(torch.cat([a, b], dim=1))


class AttentionUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1 = nn.Conv3d(1, 8, 3, padding=1)
        self.e2 = nn.Conv3d(8, 16, 3, padding=1)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv3d(16, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU())
        self.wg = nn.Sequential(nn.Conv3d(8, 4, 1), nn.BatchNorm3d(4))
        self.wx = nn.Sequential(nn.Conv3d(8, 4, 1), nn.BatchNorm3d(4))
        self.psi = nn.Sequential(nn.Conv3d(4, 1, 1), nn.BatchNorm3d(1), nn.Sigmoid())
        self.out = nn.Conv3d(16, 2, 1)

    def forward(self, x):
        a = F.relu(self.e1(x))
        g = self.up(F.relu(self.e2(F.max_pool3d(a, 2, 2))))
        gate = self.psi(F.relu(self.wg(g) + self.wx(a)))
        return self.out(torch.cat((a * gate, g), dim=1))


class SegResNet(nn.Module):
    """Residual encoder with group normalisation, trilinear up, sums."""

    def __init__(self):
        super().__init__()
        self.init = nn.Conv3d(2, 8, 3, padding=1, bias=False)
        self.b0, self.b1, self.b2 = self.block(8), self.block(16), self.block(8)
        self.down = nn.Conv3d(8, 16, 3, 2, 1, bias=False)
        self.reduce = nn.Conv3d(16, 8, 1, bias=False)
        self.up = nn.Upsample(scale_factor=2, mode="trilinear", align_corners=False)
        self.final = nn.Sequential(nn.GroupNorm(4, 8), nn.ReLU(inplace=True), nn.Conv3d(8, 3, 1))

    @staticmethod
    def block(channels):
        return nn.ModuleDict({"n1": nn.GroupNorm(4, channels), "c1": nn.Conv3d(channels, channels, 3, padding=1, bias=False),
                              "n2": nn.GroupNorm(4, channels), "c2": nn.Conv3d(channels, channels, 3, padding=1, bias=False)})

    @staticmethod
    def run(block, x):
        y = block["c1"](F.relu(block["n1"](x)))
        return x + block["c2"](F.relu(block["n2"](y)))

    def forward(self, x):
        a = self.run(self.b0, self.init(x))
        b = self.run(self.b1, self.down(a))
        return self.final(self.run(self.b2, self.up(self.reduce(b)) + a))
