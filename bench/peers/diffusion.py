"""The UNet of guided-diffusion as a plain PyTorch module, with the names of published checkpoints of elevation models: see
src/model/diffusion.h. Peers and reference dumps share it."""
import math

import torch
from torch import nn
import torch.nn.functional as F


def level_values(gamma, count):
    """What the network is told of noise levels: [n] -> [n, count]."""
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(count // 2, dtype=torch.float64, device=gamma.device) / (count // 2)).to(gamma)
    angles = gamma[:, None] * frequencies[None]
    return torch.cat([angles.cos(), angles.sin()], 1)


class Block(nn.Module):
    """Two convolutions with norms; the second norm is scaled and shifted by the noise level. `scale` 2 doubles, 0.5 halves."""

    def __init__(self, inside, out, hidden, groups, scale=1.0, dropout=0.0):
        super().__init__()
        self.scale = scale
        self.in_layers = nn.Sequential(nn.GroupNorm(groups, inside), nn.SiLU(), nn.Conv2d(inside, out, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(hidden, 2 * out))
        self.out_layers = nn.Sequential(nn.GroupNorm(groups, out), nn.SiLU(), nn.Dropout(dropout), nn.Conv2d(out, out, 3, padding=1))
        self.skip_connection = nn.Identity() if inside == out else nn.Conv2d(inside, out, 1)

    def resampled(self, x):
        if self.scale > 1:
            return F.interpolate(x, scale_factor=2, mode="nearest")
        return F.avg_pool2d(x, 2) if self.scale < 1 else x

    def forward(self, x, emb):
        norm, silu, conv = self.in_layers
        h = conv(self.resampled(silu(norm(x))))
        factor, offset = self.emb_layers(emb)[:, :, None, None].chunk(2, 1)
        norm, *rest = self.out_layers
        h = norm(h) * (1 + factor) + offset
        for layer in rest:
            h = layer(h)
        return self.skip_connection(self.resampled(x)) + h


class Attention(nn.Module):
    def __init__(self, width, head, groups):
        super().__init__()
        self.heads = width // head
        self.norm = nn.GroupNorm(groups, width)
        self.qkv = nn.Conv1d(width, 3 * width, 1)
        self.proj_out = nn.Conv1d(width, width, 1)

    def forward(self, x, emb=None):
        n, c, height, width = x.shape
        flat = x.reshape(n, c, -1)
        parts = self.qkv(self.norm(flat)).reshape(n, self.heads, 3, c // self.heads, -1).transpose(3, 4)  # a head's q, k, v lie together
        mixed = F.scaled_dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2])
        return (flat + self.proj_out(mixed.transpose(2, 3).reshape(n, c, -1))).reshape(n, c, height, width)


class Stage(nn.ModuleList):
    def forward(self, x, emb):
        for block in self:
            x = block(x) if isinstance(block, nn.Conv2d) else block(x, emb)
        return x


class DiffusionUNet(nn.Module):
    """Published: channels 2, widths (32, 64, 128, 256, 256), blocks 2, attention at scales 2 and 3, heads of 8 channels, 32 groups."""

    def __init__(self, channels=2, widths=(32, 64, 128, 256, 256), blocks=2, attention=(2, 3), head=8, groups=32, dropout=0.0):
        super().__init__()
        self.levels = widths[0]
        hidden = 4 * widths[0]
        self.cond_embed = nn.Sequential(nn.Linear(self.levels, hidden), nn.SiLU(), nn.Linear(hidden, hidden))

        def block(inside, out, scale=1.0):
            return Block(inside, out, hidden, groups, scale, dropout)

        self.input_blocks = nn.ModuleList([Stage([nn.Conv2d(channels, widths[0], 3, padding=1)])])
        width, saved = widths[0], [widths[0]]
        for k, out in enumerate(widths):
            for _ in range(blocks):
                self.input_blocks.append(Stage([block(width, out)] + ([Attention(out, head, groups)] if k in attention else [])))
                width = out
                saved.append(width)
            if k + 1 < len(widths):
                self.input_blocks.append(Stage([block(width, width, 0.5)]))
                saved.append(width)
        self.middle_block = Stage([block(width, width), Attention(width, head, groups), block(width, width)])
        self.output_blocks = nn.ModuleList()
        for k in reversed(range(len(widths))):
            for i in range(blocks + 1):
                stage = Stage([block(width + saved.pop(), widths[k])] + ([Attention(widths[k], head, groups)] if k in attention else []))
                width = widths[k]
                if k and i == blocks:
                    stage.append(block(width, width, 2.0))
                self.output_blocks.append(stage)
        self.out = nn.Sequential(nn.GroupNorm(groups, width), nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))

    def table(self, gamma):
        """The scales and shifts of all blocks, in the order of the forward pass."""
        emb = self.cond_embed(level_values(gamma, self.levels))
        stages = [*self.input_blocks, self.middle_block, *self.output_blocks]
        return torch.cat([b.emb_layers(emb) for stage in stages for b in stage if isinstance(b, Block)], 1)

    def forward(self, x, gamma):
        emb = self.cond_embed(level_values(gamma, self.levels))
        saved = []
        for stage in self.input_blocks:
            x = stage(x, emb)
            saved.append(x)
        x = self.middle_block(x, emb)
        for stage in self.output_blocks:
            x = stage(torch.cat([x, saved.pop()], 1), emb)
        return self.out(x)


def randomise(net, seed):
    """Weights of a size that keeps every part of the network visible in its output."""
    torch.manual_seed(seed)
    for name, p in net.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 1.2 / math.sqrt(p[0].numel()))
        else:
            nn.init.normal_(p, 1.0 if ".weight" in name else 0.0, 0.2)
    return net
