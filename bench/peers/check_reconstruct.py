"""Compares `--preset deepinv` with the published loop written in NumPy and PyTorch: PSNR of every iteration; the status is 1
if one differs by 0.01 dB or more.

    python bench/peers/check_reconstruct.py [--tessera build/tessera] [--problems deblur,tomo2d,tomo3d] [--iterations 10]

Both use the same files for measurements, weights, truth, vectors, and the step from the record. Everything
else is implemented twice: blurs by PyTorch's FFT, the Radon transform by grid sampling, its transpose by automatic
differentiation, cone beams by a sparse matrix of Joseph's method, the 3-D network as dense convolutions with
explicit kernels.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tests" / "e2e")]
import networks
import replica
from support import picture, read_safetensors
from torch_radon import Radon

LIMIT = 0.01
MODELS = HERE.parent.parent / "models"


def drunet(path):
    """The network of a weight file, whatever its widths."""
    weights = read_safetensors(path)
    head, tail = weights["m_head.weight"].shape, weights["m_tail.weight"].shape
    blocks = sum(name.startswith("m_body.") for name in weights) // 2
    widths = [head[0]] + [weights[f"m_down{i}.{blocks}.weight"].shape[0] for i in (1, 2, 3)]
    net = networks.DRUNet(tail[0], widths, blocks).eval()
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    return net


def inflated(module):
    """k x k becomes k x k x k: odd kernels 1e-8 beside the middle slice, even ones halves."""
    for name, child in list(module.named_children()):
        if not isinstance(child, (nn.Conv2d, nn.ConvTranspose2d)):
            inflated(child)
            continue
        kernel, k = child.weight.data, child.kernel_size[0]
        kind = nn.ConvTranspose3d if isinstance(child, nn.ConvTranspose2d) else nn.Conv3d
        solid = kind(child.in_channels, child.out_channels, k, child.stride[0], child.padding[0], bias=False)
        deep = torch.full((*kernel.shape[:2], k, k, k), 1e-8)
        if k % 2:
            deep[:, :, k // 2] = kernel
        else:
            deep[:] = kernel[:, :, None] / k
        solid.weight.data = deep
        setattr(module, name, solid)
    return module


def denoiser(net, sigma, axes):
    """Arrays in our layout; `axes` bring the channels to the front."""
    def run(z):
        planes = z if axes is None else z.transpose(axes)
        tensor = torch.from_numpy(np.ascontiguousarray(planes))[None]
        with torch.no_grad():
            d = net(tensor if axes else tensor[None], sigma=sigma)[0]
        return d.numpy().transpose([axes.index(i) for i in range(3)]) if axes else d[0].numpy()
    return run


class Bench:
    def __init__(self, program, folder, iterations):
        self.program, self.folder, self.iterations = program, folder, iterations

    def record(self, *args):
        command = [self.program, "reconstruct", self.folder / "out.npy", *args, "--preset", "deepinv", "--iterations", self.iterations,
                   "--precision", "fp32", "--device", "cpu", "--json", "-", "--quiet"]
        return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout)["reconstruct"]


# --- the problems: (record, start, gradient, denoiser, truth) --------------------------------------------------------

def deblur(bench, size=64, blurs=8):
    truth = picture(size, size)
    np.save(bench.folder / "truth.npy", truth)
    record = bench.record("--problem", "deblur", "--image", bench.folder / "truth.npy", "--operators", blurs,
                          "--save-measurement", bench.folder / "y.npy")
    y = torch.from_numpy(np.load(bench.folder / "y.npy").reshape(blurs, size, size, 3)).permute(0, 3, 1, 2)
    along, across = 0.01 * size, 0.005 * size
    half = int(along / 0.3 + 1)
    down, right = torch.meshgrid(*[torch.arange(-half, half + 1, dtype=torch.float64)] * 2, indexing="ij")
    spectra = []
    for angle in np.linspace(0, math.pi, blurs):
        u, v = right * math.cos(angle) - down * math.sin(angle), right * math.sin(angle) + down * math.cos(angle)
        kernel = torch.exp(-u**2 / (2 * across**2) - v**2 / (2 * along**2))
        padded = torch.zeros(size, size, dtype=torch.float64)
        padded[:2 * half + 1, :2 * half + 1] = kernel / kernel.sum()
        spectra.append(torch.fft.rfft2(padded.roll((-half, -half), (0, 1)).float()))

    def gradient(x):
        x, total = torch.from_numpy(x).permute(2, 0, 1), 0
        for spectrum, seen in zip(spectra, y):
            rest = torch.fft.irfft2(torch.fft.rfft2(x) * spectrum) - seen
            total = total + torch.fft.irfft2(torch.fft.rfft2(rest) * spectrum.conj())
        return total.permute(1, 2, 0).numpy()

    net = drunet(MODELS / "drunet-color-small.safetensors")
    return record, np.zeros_like(truth), gradient, denoiser(net, 0.005, (2, 0, 1)), truth


def tomo2d(bench, size=64, views=30):
    record = bench.record("--problem", "tomo2d", "--size", size, "--angles", views, "--save-measurement", bench.folder / "y.npy",
                          "--side-by-side", bench.folder / "side.npy")
    truth = np.load(bench.folder / "side.npy")[:, -size:]
    y = torch.from_numpy(np.load(bench.folder / "y.npy"))[None, None]
    radon = Radon(size, views, "cpu", True)

    def gradient(x):
        with torch.no_grad():
            rest = radon.forward(torch.from_numpy(x)[None, None]) - y
        return radon.adjoint(rest)[0, 0].numpy()

    net = drunet(MODELS / "drunet-gray-small.safetensors")
    return record, np.zeros_like(truth), gradient, denoiser(net, 0.01, None), truth


def joseph(vectors, size, rows, columns):
    """Line integrals as a sparse matrix, (views rows columns) x (voxels of a cube of `size`): a ray is sampled in the slices
    of the axis it follows most, bilinear inside them."""
    at, entries = [], []
    index = np.arange(rows * columns)
    for view, (source, centre, u, v) in enumerate(vectors.reshape(-1, 4, 3)):
        across, down = index % columns - (columns - 1) / 2, index // columns - (rows - 1) / 2
        ray = centre + across[:, None] * u + down[:, None] * v - source
        length = np.abs(ray)
        axis = np.where(length[:, 1] > (1 + 1e-9) * length[:, 0], 1, 0)
        axis = np.where(length[:, 2] > (1 + 1e-9) * np.take_along_axis(length, axis[:, None], 1)[:, 0], 2, axis)
        for main in range(3):
            own = index[axis == main]
            slope = ray[own] / ray[own][:, main:main + 1]
            weight = np.sqrt((slope**2).sum(1))
            for slice_ in range(size):
                place = source + slope * (slice_ - (size - 1) / 2 - source[main])[..., None] + (size - 1) / 2
                first = np.floor(place).astype(int)
                others = [a for a in range(3) if a != main]
                for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    voxel, share = first.copy(), weight.copy()
                    voxel[:, main] = slice_
                    for other, more in zip(others, step):
                        far = place[:, other] - first[:, other]
                        voxel[:, other] += more
                        share = share * (far if more else 1 - far)
                    inside = ((voxel >= 0) & (voxel < size)).all(1)
                    x, y, z = voxel[inside].T
                    at.append(np.stack([view * rows * columns + own[inside], (z * size + y) * size + x]))
                    entries.append(share[inside])
    at, entries = torch.from_numpy(np.concatenate(at, 1)), torch.from_numpy(np.concatenate(entries))
    return torch.sparse_coo_tensor(at, entries, (len(vectors) * rows * columns, size**3)).coalesce()


def ball(size):
    """Something to look at: a head of ellipsoids."""
    z, y, x = (np.mgrid[0:size, 0:size, 0:size] + 0.5) * 2 / size - 1
    volume = 0.5 * (x**2 / 0.6 + y**2 / 0.75 + z**2 / 0.7 < 1)
    for value, centre, radii in ((0.5, (0.3, 0.1, 0), (0.2, 0.3, 0.4)), (-0.3, (-0.3, -0.1, 0.2), (0.3, 0.2, 0.3)), (0.3, (0, 0.5, -0.2), (0.1, 0.1, 0.3))):
        volume += value * (sum(((a - c) / r)**2 for a, c, r in zip((x, y, z), centre, radii)) < 1)
    return np.clip(volume, 0, 1).astype(np.float32)


def tomo3d(bench, size=32, views=20):
    rows = columns = size + 4
    angles = 2 * math.pi * np.arange(views) / views
    s, c, zero, one = np.sin(angles), np.cos(angles), np.zeros(views), np.ones(views)
    vectors = np.stack([2 * size * s, -2 * size * c, zero, -size * s, size * c, zero, 1.5 * c, 1.5 * s, zero, zero, zero, 1.5 * one], 1)
    matrix, truth = joseph(vectors, size, rows, columns), ball(size)
    noise = np.random.default_rng(1).normal(0, 0.01, matrix.shape[0])
    y = (matrix @ torch.from_numpy(truth.reshape(-1)).double()).numpy() + noise
    np.save(bench.folder / "vectors.npy", vectors)
    np.save(bench.folder / "truth.npy", truth)
    np.save(bench.folder / "y.npy", y.reshape(views, rows, columns).astype(np.float32))
    problem = {"operator": "cone", "vectors": "vectors.npy", "volume": [size] * 3, "measurement": "y.npy", "truth": "truth.npy", "noise": 0.01}
    (bench.folder / "problem.json").write_text(json.dumps(problem))
    record = bench.record("--problem", bench.folder / "problem.json")
    # In double precision: 50 steps of conjugate gradients tell apart what rounding did to them.
    forward, back, seen = matrix.to_sparse_csr(), matrix.t().coalesce().to_sparse_csr(), torch.from_numpy(y.astype(np.float32)).double()

    def gradient(x):
        return (back @ (forward @ torch.from_numpy(np.float64(x).reshape(-1)) - seen)).numpy().reshape(truth.shape)

    nothing = gradient(np.zeros(truth.shape))
    start = replica.fitted(replica.conjugate_gradients(lambda x: gradient(x) - nothing, -nothing))
    net = inflated(drunet(MODELS / "drunet-gray-small.safetensors"))

    def denoise(z):
        with torch.no_grad():
            return net(torch.from_numpy(z)[None, None], sigma=0.03)[0, 0].numpy()

    return record, start, gradient, denoise, truth


PROBLEMS = {"deblur": deblur, "tomo2d": tomo2d, "tomo3d": tomo3d}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default=str(HERE.parent.parent / "build" / "tessera"))
    parser.add_argument("--problems", default="deblur,tomo2d,tomo3d")
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args()
    broken = False
    for name in options.problems.split(","):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(options.tessera, pathlib.Path(folder), options.iterations)
            record, start, gradient, denoise, truth = PROBLEMS[name](bench)
            told = [i["psnr_db"] for i in record["iterations"]]
            found = replica.qualities(start, gradient, denoise, truth, record["step"], len(told), record["relax"])
        print(f"{name}, step {record['step']:.6g}, PSNR in dB by iteration, Tessera / PyTorch / difference", flush=True)
        for i, (a, b) in enumerate(zip(told, found)):
            bad = not abs(a - b) < LIMIT
            broken |= bad
            print(f"  {i + 1:3} {a:9.4f} {b:9.4f} {a - b:9.5f}{'  OVER THE BOUND' if bad else ''}")
        broken |= len(told) != options.iterations
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
