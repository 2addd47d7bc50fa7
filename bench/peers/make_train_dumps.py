"""The results of tests/data/ops/optimize.safetensors and loss.safetensors: ten steps of each optimizer and the losses with their
gradients, as PyTorch computes them in fp32, for tests/cpu/test_optimize.c.

    python bench/peers/make_train_dumps.py [FOLDER]

Case i of a file has the tensors i.NAME: what goes in, settings, and what comes out.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

from make_op_dumps import ROOT, cases, channels_last, save

SGD, ADAM, ADAMW = range(3)
MSE, L1, CHARBONNIER, MASKED_MSE, BCE_LOGITS = range(5)
STEPS, SIZE = 10, 61


def optimizer(kind, rate, clip=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum=0.0, nesterov=False):
    start = torch.randn(SIZE)
    gradients = torch.randn(STEPS, SIZE) * torch.logspace(-4, 1, SIZE)
    parameter = torch.nn.Parameter(start.clone())
    if kind == SGD:
        method = torch.optim.SGD([parameter], lr=rate, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, foreach=False)
    else:
        method = (torch.optim.Adam if kind == ADAM else torch.optim.AdamW)(
            [parameter], lr=rate, betas=betas, eps=eps, weight_decay=weight_decay, foreach=False)
    after = []
    for step in range(STEPS):
        for group in method.param_groups:
            group["lr"] = rate * (1 - step / STEPS)  # as a schedule would: the same numbers in the test
        parameter.grad = gradients[step].clone()
        if clip:
            torch.nn.utils.clip_grad_norm_([parameter], clip, foreach=False)
        method.step()
        after.append(parameter.detach().clone())
    return {"start": start, "gradients": gradients, "out": torch.stack(after),
            "settings": torch.tensor([kind, rate, *betas, eps, weight_decay, momentum, nesterov, clip])}


def loss(kind, n, h, w, c, epsilon=0.0, mask_channels=0):
    prediction, target = torch.randn(n, c, h, w, requires_grad=True), torch.randn(n, c, h, w)
    case = {}
    if kind == BCE_LOGITS:
        prediction = (8 * prediction.detach()).requires_grad_()
        target = torch.rand(n, c, h, w)
        value = F.binary_cross_entropy_with_logits(prediction, target)
    elif kind == MSE:
        value = F.mse_loss(prediction, target)
    elif kind == L1:
        value = F.l1_loss(prediction, target)
    elif kind == CHARBONNIER:
        value = torch.sqrt((prediction - target) ** 2 + epsilon ** 2).mean()
    else:
        mask = (torch.rand(n, mask_channels, h, w) > 0.4).float() * torch.rand(n, mask_channels, h, w)
        case["mask"] = channels_last(mask)
        mask = mask.expand(n, c, h, w)
        value = (mask * (prediction - target) ** 2).sum() / mask.sum()
    value.backward()
    return {**case, "in": channels_last(prediction.detach()), "target": channels_last(target), "gradient": channels_last(prediction.grad),
            "out": value.detach().reshape(1), "settings": torch.tensor([kind, epsilon])}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "data" / "ops"
    torch.manual_seed(11)
    save(folder / "optimize.safetensors", cases(
        optimizer(SGD, 0.05),
        optimizer(SGD, 0.05, momentum=0.875, weight_decay=0.01),
        optimizer(SGD, 0.05, momentum=0.875, weight_decay=0.01, nesterov=True, clip=2.0),
        optimizer(ADAM, 1e-3),
        optimizer(ADAM, 1e-2, betas=(0.75, 0.96875), weight_decay=0.125, clip=0.5),
        optimizer(ADAMW, 1e-2, eps=1e-6, weight_decay=0.125),
        optimizer(ADAMW, 1e-3, betas=(0.25, 0.5), weight_decay=0.01, clip=100.0)))
    torch.manual_seed(12)
    save(folder / "loss.safetensors", cases(
        loss(MSE, 2, 5, 7, 3),
        loss(L1, 1, 4, 9, 3),
        loss(CHARBONNIER, 2, 5, 3, 1, epsilon=1e-3),
        loss(MASKED_MSE, 2, 5, 7, 3, mask_channels=1),
        loss(MASKED_MSE, 1, 6, 4, 5, mask_channels=5),
        loss(BCE_LOGITS, 1, 5, 6, 2)))


if __name__ == "__main__":
    main()
