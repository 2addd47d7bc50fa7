"""The results of tests/data/ops: single ops as PyTorch computes them in fp32, for tests/**/test_group_norm*.c and test_attention*.c; and a
small network of them in fp64, with its weights, for test_blocks*.c.

    python bench/peers/make_op_dumps.py [FOLDER]

Case i of a file has the tensors i.NAME, channels last: inputs, parameters, settings and what comes out.
"""
import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def channels_last(x):
    return x.permute(0, 2, 3, 1).contiguous()


def group_norm(n, h, w, c, groups, scale_shift, silu):
    x, weight, bias = 2 * torch.randn(n, c, h, w) + 1, 1 + torch.randn(c) / 2, torch.randn(c)
    y = F.group_norm(x, groups, weight, bias, 1e-5)
    case = {"in": channels_last(x), "weight": weight, "bias": bias, "settings": torch.tensor([groups, 1e-5, silu])}
    if scale_shift:
        case["scale_shift"] = torch.randn(n, 2 * c)
        scale, shift = case["scale_shift"][..., None, None].chunk(2, dim=1)
        y = y * (1 + scale) + shift
    case["out"] = channels_last(F.silu(y) if silu else y)
    return case


def attention(n, h, w, heads, head, by_head):
    """As the guided-diffusion UNets have it: with `by_head` the channels of a head, q then k then v, lie together."""
    qkv = 1.5 * torch.randn(n, 3 * heads * head, h * w)
    if by_head:
        q, k, v = qkv.reshape(n, heads, 3 * head, h * w).chunk(3, dim=2)
    else:
        q, k, v = (part.reshape(n, heads, head, h * w) for part in qkv.chunk(3, dim=1))
    out = F.scaled_dot_product_attention(*(part.transpose(2, 3) for part in (q, k, v)))
    return {
        "in": channels_last(qkv.reshape(n, -1, h, w)),
        "out": channels_last(out.transpose(2, 3).reshape(n, heads * head, h, w)),
        "settings": torch.tensor([heads, float(by_head)]),
    }


def network():
    """A block of a guided-diffusion UNet: convolutions, norms with and without scale and shift, attention with a residual."""
    c, groups, heads = 16, 4, 2
    net = torch.nn.ModuleDict({
        "head": torch.nn.Conv2d(3, c, 3, padding=1), "norm1": torch.nn.GroupNorm(8, c),
        "body": torch.nn.Conv2d(c, c, 3, padding=1), "norm2": torch.nn.GroupNorm(groups, c),
        "qkv": torch.nn.Conv2d(c, 3 * c, 1), "proj": torch.nn.Conv2d(c, c, 1),
        "norm3": torch.nn.GroupNorm(c, c), "tail": torch.nn.Conv2d(c, 3, 3, padding=1)}).double()
    for name in ("norm1", "norm2", "norm3"):
        torch.nn.init.normal_(net[name].weight, 1, 0.3)
        torch.nn.init.normal_(net[name].bias, 0, 0.3)
    torch.nn.init.normal_(net["qkv"].weight, 0, 0.5)
    tensors = {name: t.detach().float() for name, t in net.state_dict().items()}
    net.load_state_dict({name: t.double() for name, t in tensors.items()})
    x, scale_shift = torch.randn(2, 3, 8, 6).float().double(), torch.randn(2, 2 * c).float().double()
    scale, shift = scale_shift[..., None, None].chunk(2, dim=1)
    with torch.no_grad():
        h = net["body"](F.silu(net["norm1"](net["head"](x)) * (1 + scale) + shift))
        n, _, height, width = h.shape
        qkv = net["qkv"](net["norm2"](h)).reshape(n * heads, 3 * c // heads, height * width)
        q, k, v = (part.transpose(1, 2) for part in qkv.chunk(3, dim=1))
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, c, height, width)
        h = h + net["proj"](a)
        y = net["tail"](F.silu(net["norm3"](h)))
    tensors.update({"0.in": channels_last(x), "0.scale_shift": scale_shift, "0.out": channels_last(y)})
    return tensors


def save(path, tensors):
    tensors = {name: t.float().contiguous() for name, t in tensors.items()}
    header, data = {}, b""
    for name, t in tensors.items():
        raw = t.numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def cases(*tensors):
    return {f"{i}.{name}": t for i, case in enumerate(tensors) for name, t in case.items()}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "data" / "ops"
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    save(folder / "group_norm.safetensors", cases(
        group_norm(2, 5, 7, 12, 4, False, False),
        group_norm(2, 3, 5, 32, 32, True, True),
        group_norm(1, 4, 4, 24, 1, True, True),
        group_norm(1, 3, 3, 96, 32, False, True)))
    torch.manual_seed(8)
    save(folder / "attention.safetensors", cases(
        attention(2, 4, 5, 2, 8, True),
        attention(1, 5, 7, 1, 8, False),
        attention(1, 3, 5, 1, 32, True),
        attention(1, 3, 3, 2, 40, False),
        attention(2, 3, 4, 3, 7, True)))
    torch.manual_seed(9)
    save(folder / "network.safetensors", network())


if __name__ == "__main__":
    main()
