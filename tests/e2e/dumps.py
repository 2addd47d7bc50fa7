"""dumps.py PROGRAM: every network against outputs that PyTorch gave in double precision (tests/data/networks)."""
import sys

import numpy as np

import reference
from support import Bench, write_safetensors

FP32_LIMIT = 1e-5  # of the largest output value
BF16_LIMIT = 3e-2  # relative L2 error; PyTorch itself is off by 2.6e-2 on the worst of these networks


def main():
    bench = Bench(sys.argv[1])
    precisions = ["fp32", "bf16"] if bench.has_bf16() else ["fp32"]
    for case in reference.CASES:
        stored = np.load(reference.FOLDER / f"{case.name}.npz")
        weights = case.weights()
        if not bench.check(case.checksum(weights) == int(stored["crc"]), f"{case.name}: weights and images are those of the dump"):
            continue
        model = write_safetensors(bench.path("model.safetensors"), weights)
        for height, width in case.sizes:
            wanted = stored[f"{height}x{width}"]
            np.save(bench.path("in.npy"), case.image((height, width)))
            for precision in precisions:
                record = bench.record("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", model, "--sigma",
                                      reference.SIGMA, "--precision", precision)
                if not record:
                    continue
                got = np.load(bench.path("out.npy"))
                what = f"{case.name} {height}x{width} {precision}"
                if not bench.check(got.shape == wanted.shape and got.dtype == np.float32 and
                                   record["denoise"]["architecture"] == case.network, f"{what}: recognised, float32 out"):
                    continue
                off = got.astype(np.float64) - wanted
                if precision == "fp32":
                    error = np.abs(off).max() / np.abs(wanted).max()
                    bench.check(error <= FP32_LIMIT, f"{what}: largest difference {error:.2e} of the largest value")
                else:
                    error = np.sqrt((off**2).sum() / (wanted.astype(np.float64)**2).sum())
                    bench.check(error <= BF16_LIMIT, f"{what}: relative L2 error {error:.2e}")
    bench.finish()


main()
