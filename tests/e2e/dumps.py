"""dumps.py PROGRAM [cuda]: compares every network with outputs of PyTorch in double precision (tests/data/networks)."""
import sys

import numpy as np

import reference
from support import Bench, write_safetensors

FP32_LIMIT = 1e-5  # of the largest output value
# Relative L2 errors; PyTorch itself is off by 2.6e-2 in bf16 on the worst of these networks.
LIMITS = {"bf16": 3e-2, "fp16": 4e-3, "tf32": 4e-3}


def main():
    bench = Bench(sys.argv[1])
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    precisions = ["fp32", "bf16"] if device != "cpu" or bench.has_bf16() else ["fp32"]
    if device != "cpu":
        precisions += ["fp16", "tf32"]
        bench.need_device(device)
    for case in reference.CASES:
        stored = np.load(reference.FOLDER / f"{case.name}.npz")
        weights = case.weights()
        if not bench.check(case.checksum(weights) == int(stored["crc"]), f"{case.name}: weights and images are those of the dump"):
            continue
        model = write_safetensors(bench.path("model.safetensors"), weights)
        for height, width in case.sizes if device == "cpu" else case.sizes[-1:]:  # a card opens slowly
            wanted = stored[f"{height}x{width}"]
            np.save(bench.path("in.npy"), case.image((height, width)))
            for precision in precisions:
                record = bench.record("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", model, "--sigma",
                                      reference.SIGMA, "--precision", precision, "--device", device)
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
                    bench.check(error <= LIMITS[precision], f"{what}: relative L2 error {error:.2e}")
    bench.finish()


main()
