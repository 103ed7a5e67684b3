"""Training step of a zoo network in PyTorch, channels-last: forward, loss, backward, SGD with momentum."""

import torch

import networks_torch
import peer_step


def main():
    args = peer_step.arguments()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    order = torch.channels_last_3d if len(args.input) == 4 else torch.channels_last
    model = networks_torch.make(args.model, args.input).to(memory_format=order).train()
    run = torch.compile(model) if args.compile else model
    src = torch.randn(args.batch, *args.input).contiguous(memory_format=order)
    target = networks_torch.random_target(args.model, args.batch, args.input)
    loss_function = networks_torch.loss_of(args.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(run(src), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    parameters = sum(parameter.numel() for parameter in model.parameters())
    peer_step.report(step, args, torch.__version__, parameters)


main()
