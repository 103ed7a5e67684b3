"""Results of the program against those of PyTorch in double.

The limit is 1e-5 in relative norm. Where PyTorch's own float result comes close to that or passes it, a float program cannot be
asked for more: the limit is then three times PyTorch's error.
"""

import math

import numpy

LIMIT = 1e-5


def differentiate(model, loss_function, x, target):
    """Loss, output and gradients in the precision of the arguments."""
    x = x.clone().requires_grad_()
    output = model(x)
    loss = loss_function(output, target)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"loss": loss.detach(), "output": output.detach(), "input": x.grad, **gradients}


def relative_error(value, judge, scale=1.0):
    """In norm. A judge that is zero but for rounding (a bias before a normalisation) is compared relative to `scale`."""
    judge = numpy.asarray(judge, "f8").ravel()
    size = numpy.linalg.norm(judge)
    difference = numpy.linalg.norm(numpy.asarray(value, "f8").ravel() - judge)
    return float(difference / (size if size > 1e-12 * scale else scale))


def compare_tensors(ours, judge, peer):
    """The largest error with its tensor, PyTorch's own largest error in float, and what is wrong."""
    problems = [f"{key}: missing" for key in judge.keys() - ours.keys()]
    problems += [f"{key}: superfluous" for key in ours.keys() - judge.keys()]
    worst, worst_peer = (0.0, ""), 0.0
    scale = math.sqrt(sum(value.square().sum().item() for key, value in judge.items() if key not in ("loss", "output")))
    for key in judge.keys() & ours.keys():
        if numpy.size(ours[key]) != judge[key].numel():
            problems.append(f"{key}: {numpy.shape(ours[key])} instead of {tuple(judge[key].shape)}")
            continue
        error, peer_error = (relative_error(value[key], judge[key], scale) for value in (ours, peer))
        worst, worst_peer = max(worst, (error, key)), max(worst_peer, peer_error)
        if not error <= max(LIMIT, 3 * peer_error):
            problems.append(f"{key}: off by {error:.2e}, PyTorch by {peer_error:.2e}")
    return worst, worst_peer, problems
