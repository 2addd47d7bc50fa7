"""Train a small DRUNet denoiser from scratch in a few minutes on one GPU.

DRUNet as published has 32.6 million parameters and was trained for days on large data
sets.  For tests, examples and timing we want weights that are free of third-party
checkpoints, small, and still good: this script trains the same network (same layout and
state-dict names, no bias, no normalisation, skips added, noise level as last input
channel) with widths 32/64/128/256 and two residual blocks per stage: 4.25 million
parameters.  One set of weights serves every noise level from 0 to 0.2 (images in 0..1).

    python train_drunet_small.py --data DIR --channels 3 --seconds 500 \
        --out drunet-color-small.safetensors --validate KODAK24_DIR

--channels 1 trains on the luma of the same colour images.  The learning rate follows the
clock: warm-up, then a cosine that ends at zero when --seconds are over, so that a run uses
exactly the time it is given.  The last 40 % of the time use larger crops and fewer of them
(same number of pixels), which are closer to the whole images that the network will see.
The weights that are kept are the exponential moving average, rounded to half precision.
Validation images are only ever looked at once, after training, with those rounded weights.
"""
import argparse
import json
import math
import os
import struct
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import networks

WIDTHS, BLOCKS = (32, 64, 128, 256), 2
SIGMA_MAX = 0.2
SCALES = ((1.0, 0.55), (0.9, 0.15), (0.8, 0.15), (0.7, 0.15))  # image scale, share of crops


# ---------------------------------------------------------------- network
class DRUNet(networks.DRUNet):
    """The peers' DRUNet with a start for training without normalisation, and a forward pass for tensor cores."""

    def __init__(self, channels):
        super().__init__(channels, WIDTHS, BLOCKS)
        self.channels = channels
        self.initialise()

    @torch.no_grad()
    def initialise(self):
        """Keep the signal at the same size through the whole net; residual branches start small."""
        for name, w in self.named_parameters():
            if w.shape[-1] == 2 and "up" in name:   # transposed: one tap per output; its input is a
                std = 0.5 / math.sqrt(w.shape[0])   # sum of two nearly equal maps, hence the half
            else:
                std = 1 / math.sqrt(w[0].numel())
            if ".res.0." in name:
                std *= math.sqrt(2)
            if ".res.2." in name or "tail" in name:
                std *= 0.1
            nn.init.normal_(w, 0, std)

    def forward(self, x, sigma):
        """x: [n, c, h, w] with h, w multiples of 8; sigma: [n, 1, 1, 1].

        Input and output are padded to eight channels with zeros, which changes no value but
        lets the first and the last convolution run on tensor cores.
        """
        n, c, h, w = x.shape
        x0 = torch.cat([x, sigma.expand(n, 1, h, w), x.new_zeros(n, 7 - c, h, w)], 1)
        x0 = x0.contiguous(memory_format=torch.channels_last)
        x1 = F.conv2d(x0, F.pad(self.m_head.weight, (0, 0, 0, 0, 0, 7 - c)), padding=1)
        x2 = self.m_down1(x1)
        x3 = self.m_down2(x2)
        x4 = self.m_down3(x3)
        u = self.m_up3(self.m_body(x4) + x4)
        u = self.m_up2(u + x3)
        u = self.m_up1(u + x2)
        tail = F.pad(self.m_tail.weight, (0, 0, 0, 0, 0, 0, 0, 8 - c))
        return F.conv2d(u + x1, tail, padding=1)[:, :c]


# ---------------------------------------------------------------- files
def read_image(path, channels):
    """uint8 array [h, w, channels]; a colour file is turned to luma when channels is 1."""
    try:
        from PIL import Image
        img = np.array(Image.open(path))
    except ImportError:
        from torchvision.io import read_image as read
        img = read(path).permute(1, 2, 0).numpy()
    img = img[:, :, None] if img.ndim == 2 else img[:, :, :3]
    if channels == 1 and img.shape[2] == 3:
        img = np.rint(img @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)[:, :, None]
    if img.shape[2] != channels:
        raise SystemExit(f"{path}: {img.shape[2]} channels, expected {channels}")
    return np.ascontiguousarray(img)


def image_files(folder, skip=()):
    names = sorted(f for f in os.listdir(folder) if f.lower().endswith((".png", ".jpg", ".jpeg")))
    return [os.path.join(folder, f) for f in names if f not in skip]


def half_weights(model, ema):
    """The averaged weights under their state-dict names, in half precision, on the host."""
    return {k: v.detach().half().cpu().contiguous() for k, v in zip(dict(model.named_parameters()), ema)}


def write_safetensors(path, tensors, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, t in tensors.items():
        size = t.numel() * 2
        header[name] = {"dtype": "F16", "shape": list(t.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.numpy().astype("<f2").tobytes())
    os.replace(path + ".part", path)


# ---------------------------------------------------------------- training data
class Crops:
    """All training images as bytes on the device, at several scales, and random crops of them."""

    def __init__(self, files, channels, device):
        images = [torch.from_numpy(read_image(f, channels)) for f in files]
        images = [i.transpose(0, 1) if i.shape[0] > i.shape[1] else i for i in images]  # all landscape
        h, w = min(i.shape[0] for i in images), min(i.shape[1] for i in images)
        full = torch.stack([i[:h, :w] for i in images]).to(device)
        self.pools = []
        for scale, _ in SCALES:
            size = (round(h * scale), round(w * scale))
            pool = full if scale == 1 else torch.cat([
                F.interpolate(part.permute(0, 3, 1, 2).float(), size, mode="bicubic", antialias=True)
                .clamp(0, 255).round().byte().permute(0, 2, 3, 1) for part in full.split(32)])
            self.pools.append(pool.contiguous())
        self.device = device

    def crop(self, pool, count, size):
        """count random crops of a random image, turned or mirrored in one of eight ways."""
        def uniform(high):
            return torch.randint(high, (count, 1), device=self.device)

        number, rows, cols = pool.shape[:3]
        line = torch.arange(size, device=self.device).expand(count, size)
        r = uniform(rows - size + 1) + torch.where(uniform(2) == 1, size - 1 - line, line)
        c = uniform(cols - size + 1) + torch.where(uniform(2) == 1, size - 1 - line, line)
        x = pool[uniform(number)[:, :, None], r[:, :, None], c[:, None, :]]
        return torch.where(uniform(2)[:, :, None, None] == 1, x.transpose(1, 2), x)

    def batch(self, count, size):
        counts = [int(count * share) for _, share in SCALES]
        counts[0] += count - sum(counts)
        x = torch.cat([self.crop(p, n, size) for p, n in zip(self.pools, counts)])
        clean = x.permute(0, 3, 1, 2).float() / 255
        sigma = torch.rand(count, 1, 1, 1, device=self.device) * SIGMA_MAX
        return clean, clean + sigma * torch.randn_like(clean), sigma


# ---------------------------------------------------------------- training
def train(model, crops, args, save):
    """Returns the averaged weights, the number of steps made and the seconds they took."""
    device, gpu = crops.device, crops.device.type == "cuda"
    params = list(model.parameters())
    ema = [p.detach().clone() for p in params]
    good = [p.clone() for p in ema]
    optimiser = torch.optim.AdamW(params, lr=args.lr, betas=(0.9, 0.99), weight_decay=0.01, fused=gpu)
    # Half precision keeps three bits more than bfloat16, which matters at low noise.  The scaler
    # also drops any step with a gradient that is not finite, without waiting for the device.
    scaler = torch.amp.GradScaler(device.type, enabled=gpu)
    stages = ((args.batch, args.patch), (max(1, round(args.batch * (args.patch / 224) ** 2)), 224))
    step, best, scale, total = 0, math.inf, 1.0, torch.zeros((), device=device)
    start = time.time()
    last_step, last_look, next_save = 0, start, start + 120
    while True:
        now = time.time()
        t = (now - start) / args.seconds
        if t >= 1:
            break
        lr = args.lr * scale * min(1, (step + 1) / 500) * 0.5 * (1 + math.cos(math.pi * t))
        optimiser.param_groups[0]["lr"] = lr
        clean, noisy, sigma = crops.batch(*stages[t > 0.6 and gpu])
        with torch.autocast(device.type, torch.float16, enabled=gpu):
            out = model(noisy, sigma)
        # Root mean square error per crop: as balanced over the noise levels as the absolute
        # error, but its optimum is the conditional mean, which is what PSNR rewards.
        loss = ((out.float() - clean).square().mean((1, 2, 3)) + 1e-6).sqrt().mean()
        optimiser.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimiser)
        norm = nn.utils.clip_grad_norm_(params, args.clip)
        scaler.step(optimiser)
        scaler.update()
        torch._foreach_lerp_(ema, params, 1 - min(args.ema, (1 + step) / (10 + step)))
        total += loss.detach()
        step += 1
        if now < last_look + 20 and step not in (100, 300):
            continue
        # Now and then: look at the loss, and go back to the last good average if it has gone wrong.
        mean = total.item() / (step - last_step)
        rate = (step - last_step) / (time.time() - last_look)
        print(f"{time.time() - start:6.1f} s  step {step}  {rate:.1f} steps/s  lr {lr:.1e}  "
              f"loss {mean:.5f}  gradient {norm.item():.3f}", flush=True)
        if not math.isfinite(mean) or mean > 2 * best:
            print("loss out of bounds: back to the last good weights, half the learning rate", flush=True)
            with torch.no_grad():
                torch._foreach_copy_(params, good)
                torch._foreach_copy_(ema, good)
            optimiser.state.clear()
            scale *= 0.5
        else:
            best = min(best, mean)
            torch._foreach_copy_(good, ema)
            if now > next_save:
                save(good)
                next_save += 120
        total.zero_()
        last_step, last_look = step, time.time()
    finite = all(torch.isfinite(p).all().item() for p in ema)
    return (ema if finite else good), step, time.time() - start


# ---------------------------------------------------------------- validation
@torch.no_grad()
def psnr_table(model, folder, channels, device):
    """Mean PSNR at noise 15, 25, 50 (of 255); noise neither clipped nor rounded, result clipped."""
    table = {}
    for level in (15, 25, 50):
        values = []
        for f in image_files(folder):
            clean = read_image(f, channels).transpose(2, 0, 1)[None] / 255.0
            noisy = clean + np.random.default_rng(0).normal(0, level / 255, clean.shape)
            h, w = clean.shape[2:]
            x = torch.from_numpy(noisy).float().to(device)
            x = F.pad(x, (0, -w % 8, 0, -h % 8), mode="replicate")
            out = model(x, torch.full((1, 1, 1, 1), level / 255, device=device))[:, :, :h, :w]
            error = out.clamp(0, 1).double().cpu().numpy() - clean
            values.append(-10 * math.log10(np.mean(error ** 2)))
        table[str(level)] = round(float(np.mean(values)), 3)
    return table


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="folder of colour training images, all of one size or turned")
    p.add_argument("--skip", nargs="*", default=["12003.jpg"],
                   help="files to leave out; 12003.jpg of BSDS500 is the source of an image of Set12")
    p.add_argument("--channels", type=int, choices=(1, 3), default=3)
    p.add_argument("--seconds", type=float, default=500, help="time for the training loop alone")
    p.add_argument("--out", required=True)
    p.add_argument("--validate", nargs="*", default=[], metavar="DIR")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--patch", type=int, default=128)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--clip", type=float, default=0.5)
    p.add_argument("--ema", type=float, default=0.999)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    files = image_files(args.data, args.skip)
    crops = Crops(files, args.channels, device)
    model = DRUNet(args.channels).to(device, memory_format=torch.channels_last)
    count = sum(w.numel() for w in model.parameters())
    print(f"{len(files)} images, {count} parameters, batch {args.batch}, patch {args.patch}, "
          f"torch {torch.__version__}, {device}", flush=True)
    metadata = {"format": "pt", "architecture": "DRUNet", "channels": str(args.channels),
                "widths": ",".join(map(str, WIDTHS)), "blocks": str(BLOCKS), "sigma_max": str(SIGMA_MAX)}

    def save(weights):
        write_safetensors(args.out, half_weights(model, weights), metadata)

    ema, steps, seconds = train(model, crops, args, save)
    save(ema)
    model.load_state_dict(half_weights(model, ema))
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    model.eval()
    print(json.dumps({
        "out": os.path.basename(args.out), "channels": args.channels, "parameters": count,
        "data": os.path.basename(os.path.normpath(args.data)), "images": len(files), "seed": args.seed,
        "batch": args.batch, "patch": args.patch, "lr": args.lr, "steps": steps, "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "torch": torch.__version__,
        "psnr": {os.path.basename(os.path.normpath(d)): psnr_table(model, d, args.channels, device)
                 for d in args.validate}}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
