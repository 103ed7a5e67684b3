"""An ordinary PyTorch program, which does not know whether a wrapper is preloaded: convolutions in float32 against the
same in double, which no wrapper touches. Prints one JSON object.

usage: convolutions.py random SEED COUNT | threads | shapes | training | others
"""

import json
import random
import sys
import threading

import torch
from torch import nn
from torch.utils import mkldnn

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def draw(rng):
    """Arguments of a convolution and the extents of its source; nothing if the window is too large."""
    dims = rng.choice([1, 2, 2, 2, 3, 3])
    groups = rng.choice([1, 1, 1, 2, 3])
    channels = groups * rng.choice([1, 2, 3, 8, 16, 20])
    filters = groups * rng.choice([1, 4, 7, 16, 32])
    extents = [rng.randint(5, {1: 80, 2: 40, 3: 16}[dims]) for _ in range(dims)]
    size = [rng.choice([1, 2, 3, 3, 3, 5]) for _ in range(dims)]
    stride = [rng.choice([1, 1, 1, 2, 3]) for _ in range(dims)]
    padding = [rng.randint(0, 2) for _ in range(dims)]
    dilation = [rng.choice([1, 1, 1, 2]) for _ in range(dims)]
    fits = all((k - 1) * d + 1 <= e + 2 * p for k, d, e, p in zip(size, dilation, extents, padding))
    return (dims, (channels, filters, size, stride, padding, dilation, groups, rng.random() < 0.5), extents) if fits else None


def difference(ours, exact):
    return ((ours.double() - exact).norm() / (exact.norm() + 1e-30)).item()


def differences(layer, judge, src):
    """Forward and backward once: relative differences of everything that comes out."""
    judged = src.detach().double().requires_grad_(src.requires_grad)
    layer.zero_grad(set_to_none=True)
    judge.zero_grad(set_to_none=True)
    ours, exact = layer(src), judge(judged)
    # In whole numbers: no gradient of a bias is a small difference of large sums.
    gradient = torch.randint(1, 4, exact.shape).double()
    ours.backward(gradient.float())
    exact.backward(gradient)
    found = [difference(ours, exact), difference(layer.weight.grad, judge.weight.grad)]
    if layer.bias is not None:
        found.append(difference(layer.bias.grad, judge.bias.grad))
    if src.requires_grad:
        found.append(difference(src.grad, judged.grad))
    return found


def one(rng, case):
    dims, arguments, extents = case
    layer = CONVOLUTIONS[dims](*arguments)
    judge = CONVOLUTIONS[dims](*arguments).double()
    judge.load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    order = CHANNELS_LAST.get(dims) if rng.random() < 0.4 else None
    if order and rng.random() < 0.5:
        layer = layer.to(memory_format=order)
    needs_gradient = rng.random() < 0.7
    worst = 0
    for samples in rng.sample([1, 2, 3, 5, 8], 2):
        for _ in range(3):
            src = torch.randn(samples, arguments[0], *extents)
            if order:
                src = src.contiguous(memory_format=order)
            worst = max(worst, *differences(layer, judge, src.requires_grad_(needs_gradient)))
    return worst


def run_random(seed, count):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    worst = done = 0
    while done < count:
        case = draw(rng)
        if case:
            worst = max(worst, one(rng, case))
            done += 1
    return {"worst": worst, "done": done}


def run_threads():
    """The same layers by several threads at once."""
    torch.manual_seed(5)
    layers = [nn.Conv2d(16, 24, 3, padding=1), nn.Conv3d(4, 8, 3, padding=1), nn.Conv2d(24, 8, 5, stride=2)]
    judges = [nn.Conv2d(16, 24, 3, padding=1), nn.Conv3d(4, 8, 3, padding=1), nn.Conv2d(24, 8, 5, stride=2)]
    extents = [(4, 16, 30, 30), (2, 4, 12, 12, 12), (3, 24, 31, 31)]
    worst = [0.0] * 4

    def work(index):
        torch.set_num_threads(1 + index % 2)
        for step in range(6):
            i = (index + step) % 3
            src = torch.randn(extents[i])
            with torch.no_grad():
                worst[index] = max(worst[index], difference(layers[i](src), judges[i](src.double())))

    for layer, judge in zip(layers, judges):
        judge.double().load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"worst": max(worst)}


def run_shapes():
    """Extents and strides of what a program sees."""
    seen = []
    for order in (torch.contiguous_format, torch.channels_last):
        layer = nn.Conv2d(8, 16, 3, padding=1).to(memory_format=order)
        src = torch.randn(2, 8, 12, 12).contiguous(memory_format=order).requires_grad_()
        for _ in range(3):
            layer.zero_grad()
            dst = layer(src)
            dst.sum().backward()
            seen += [list(t.shape) + list(t.stride()) for t in (dst, src.grad, layer.weight.grad, layer.bias.grad)]
    return {"seen": seen}


def run_training():
    """Losses of a small network; the convolutions are large enough to be measured."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                            nn.MaxPool2d(2), nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 144, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    src, labels = torch.randn(8, 3, 48, 48), torch.randint(10, (8,))
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(src), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def run_others():
    """What is left alone, and PyTorch's own blocked tensors."""
    torch.manual_seed(7)
    layer = nn.Conv2d(16, 32, 3, padding=1)
    src = torch.randn(4, 16, 20, 20)
    exact = nn.functional.conv2d(src.double(), layer.weight.double(), layer.bias.double(), padding=1)
    with torch.no_grad():
        blocked = mkldnn.to_mkldnn(nn.Sequential(layer, nn.ReLU()).eval())(src.to_mkldnn()).to_dense()
        transposed = nn.ConvTranspose2d(16, 8, 2, stride=2)(src)
        try:
            half = difference(layer.bfloat16()(src.bfloat16()).float(), exact)
        except RuntimeError as refusal:  # oneDNN has no bfloat16 for processors without AVX-512
            half = str(refusal)
    return {"blocked": difference(blocked, exact.clamp(min=0)), "half": half,
            "transposed": list(transposed.shape)}


def main():
    torch.set_num_threads(2)
    what, *numbers = sys.argv[1:]
    print(json.dumps(globals()["run_" + what](*map(int, numbers))))


main()
