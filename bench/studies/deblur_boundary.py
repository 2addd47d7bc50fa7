"""Deblurs photographs with real blurs and compares whole, middle and border for circular and unknown boundaries.

    python bench/studies/deblur_boundary.py build/tessera PHOTO.png [--rows 256] [--noise 0.01] [--kernels gaussians|streaks] [-- OPTIONS]

A part of the photograph is blurred by linear convolution; only pixels that depend on the part alone are kept, as a camera would see
them. OPTIONS go to `tessera reconstruct`. The table of docs/reconstruction.md: --rows 256, and --rows 160 for streaks.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np


def gaussian(rows, columns, angle):
    reach, turn = int(max(rows, columns) / 0.3 + 1), math.radians(angle)
    y, x = np.mgrid[-reach:reach + 1, -reach:reach + 1].astype(np.float64)
    u, v = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
    kernel = np.exp(-u**2 / (2 * columns**2) - v**2 / (2 * rows**2))
    return kernel / kernel.sum()


def streak(side, shift):
    kernel = np.zeros((side, side))
    for i in range(side):
        kernel[i, min(side - 1, i * shift // side + (i > side // 2))] += 1 + 0.1 * i
    return kernel / kernel.sum()


def blurred(image, kernel):
    """The part of a linear convolution that the image alone decides."""
    rows, columns = (n - 1 for n in kernel.shape)
    size = [n + more for n, more in zip(image.shape, (rows, columns))]
    waves = np.fft.rfft2(image, size, axes=(0, 1)) * np.fft.rfft2(kernel, size)[..., None]
    return np.fft.irfft2(waves, size, axes=(0, 1))[rows:image.shape[0], columns:image.shape[1]]


def db(difference):
    return -10 * math.log10(np.mean(difference**2))


def report(name, image, truth, reach, seconds=""):
    third, difference = min(truth.shape[:2]) // 6, np.float64(image) - truth
    border = np.ones(truth.shape[:2], bool)
    border[reach:-reach, reach:-reach] = False
    print(f"{name:12} whole {db(difference):.2f} dB, middle {db(difference[third:-third, third:-third]):.2f}, border {db(difference[border]):.2f} {seconds}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tessera")
    parser.add_argument("photo")
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--kernels", default="gaussians", choices=["gaussians", "streaks"])
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*args):
            subprocess.run([options.tessera, "reconstruct", str(folder / "out.npy"), "--quiet", *map(str, args)], check=True)

        # The truth of a comparison is the photograph as floats.
        run("--problem", "deblur", "--image", options.photo, "--iterations", 1, "--side-by-side", folder / "side.npy")
        side = np.load(folder / "side.npy")
        photo = np.float64(side[:, -((side.shape[1] - 16) // 3):])
        entries = {"operator": "blur", "measurement": "y.npy", "truth": "truth.npy", "noise": options.noise}
        if options.kernels == "gaussians":
            angles = [0, 45, 90, 135]
            kernels = [gaussian(2.4, 1.2, angle) for angle in angles]
            entries.update(angles=angles, sigma=[2.4, 1.2])
        else:
            kernels = [streak(15, 5), streak(15, 15).T, streak(15, 9)[::-1]]
            entries["kernels"] = [f"k{i}.npy" for i in range(len(kernels))]
            for i, kernel in enumerate(kernels):
                np.save(folder / f"k{i}.npy", np.ascontiguousarray(kernel))
        reach = kernels[0].shape[0] // 2
        wide = photo[40:40 + options.rows + 2 * reach, 60:60 + options.rows * 5 // 4 + 2 * reach]
        truth = wide[reach:-reach, reach:-reach]
        y = np.concatenate([blurred(wide, kernel) for kernel in kernels])
        y += options.noise * np.random.default_rng(0).standard_normal(y.shape)
        np.save(folder / "y.npy", np.float32(y))
        np.save(folder / "truth.npy", np.float32(truth))
        report("measurement", y.reshape(-1, *truth.shape).mean(0), truth, reach)
        for boundary in ("circular", "unknown"):
            (folder / "problem.json").write_text(json.dumps({**entries, "boundary": boundary}))
            run("--problem", folder / "problem.json", "--json", folder / "record.json", *options.options)
            own = json.loads((folder / "record.json").read_text())["reconstruct"]["iterations"]
            seconds = [sum(i[key] for i in own) for key in ("gradient_seconds", "denoise_seconds")]
            report(boundary, np.load(folder / "out.npy"), truth, reach, f"(data {seconds[0]:.1f} s, denoiser {seconds[1]:.1f} s)")


if __name__ == "__main__":
    main()
