"""The results of tests/data/networks/diffusion*.safetensors: a small diffusion network with its weights, what PyTorch makes of an image in
double precision, and the gradients of one step, for tests/model/test_diffusion.c.

    python bench/peers/make_diffusion_dumps.py [FOLDER]

Images are not stored: value i of one is hashed(i), which the test computes too. bench/peers/check_diffusion.py compares the network of
published width.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

from diffusion import DiffusionUNet, randomise
from make_op_dumps import ROOT, channels_last, save

SHAPE = dict(channels=3, widths=(4, 8), blocks=1, attention=(1,), head=4, groups=4)
GAMMAS = (0.83, 0.12, 0.0007)


def hashed(n, h, w, c, first=0):
    """Values in [-1, 1) as an image, channels last, that integers give exactly."""
    i = torch.arange(first, first + n * h * w * c, dtype=torch.int64)
    return (((i * 2654435761) % 2**32 // 2**8).double() / 2**23 - 1).reshape(n, h, w, c)


def planes(x):
    return x.permute(0, 3, 1, 2)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "data" / "networks"
    net = randomise(DiffusionUNet(**SHAPE), 12)
    tensors = {f"denoise_fn.{name}": t.detach().float().clone() for name, t in net.state_dict().items()}
    net = net.double()
    gammas = torch.tensor(GAMMAS, dtype=torch.float64)
    with torch.no_grad():
        tensors["0.table"] = net.table(gammas)
        for i, gamma in enumerate(gammas):
            tensors[f"{i}.out"] = channels_last(net(planes(hashed(2, 24, 16, 3)), gamma.repeat(2)))
        large = channels_last(net(planes(hashed(1, 128, 128, 3)), gammas[:1]))
    y = net(planes(hashed(2, 24, 16, 3)), gammas[:2])  # a noise level for each image
    loss = F.mse_loss(y, planes(hashed(2, 24, 16, 1, first=5000)))
    loss.backward()
    tensors["0.loss"] = loss.detach()[None]
    for name, p in net.named_parameters():
        tensors[f"gradient.{name}"] = p.grad
    save(folder / "diffusion.safetensors", tensors)
    save(folder / "diffusion_128.safetensors", {"0.out": large})
    print(f"outputs of size {large.square().mean().sqrt():.3f}, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
