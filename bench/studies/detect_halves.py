"""Which named pipeline is best on one half of the pixels of all scenes, and what it reaches on the other half.

    python bench/studies/detect_halves.py build/tessera DATA/hsi

DATA/hsi has cubes NAME.npy and masks NAME_mask.npy. The halves are the two colours of a chess board of 8 x 8 pixels. Prints for each half and for
all pixels the mean AUROC of a pipeline over the scenes, and its difference from global RX on the scene where that is least.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

PIPELINES = ("rx", "rx-trimmed", "rx-local", "lad")
SIDE = 8


def auroc(scores, truth):
    """The share of pairs of a target and another pixel that are in order; ties count half."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    targets = truth.sum()
    return (ranks[truth].sum() - targets * (targets + 1) / 2) / (targets * (len(truth) - targets))


def halves(shape):
    y, x = np.indices(shape)
    first = (y // SIDE + x // SIDE) % 2 == 0
    return {"first half": first, "second half": ~first, "all": np.ones(shape, bool)}


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    names = sorted(path.name[:-len("_mask.npy")] for path in folder.glob("*_mask.npy"))
    found = {}
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            truth = np.load(folder / f"{name}_mask.npy").squeeze() != 0
            for pipeline in PIPELINES:
                out = pathlib.Path(work) / "scores.npy"
                subprocess.run([program, "detect", folder / f"{name}.npy", out, "--pipeline", pipeline, "--quiet"], check=True)
                scores = np.load(out).squeeze()
                for half, pixels in halves(truth.shape).items():
                    found.setdefault((half, pipeline), []).append(auroc(scores[pixels], truth[pixels]))
    for (half, pipeline), values in sorted(found.items()):
        worst = min(np.array(values) - np.array(found[half, "rx"]))
        print(f"{half:12} {pipeline:11} mean {np.mean(values):.4f}, against rx at worst {worst:+.4f}")


main()
