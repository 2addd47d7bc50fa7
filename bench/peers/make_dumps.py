"""Makes the reference outputs of tests/data: every network run by PyTorch in double precision, for tests/e2e/dumps.py.

    python bench/peers/make_dumps.py [FOLDER]

Weights and images are drawn by tests/e2e/support.py, so a dump holds only outputs and a checksum of the inputs.
In a network that adds its output to the image, the network's part must be as large as the image's; otherwise the
image alone could pass the test.
"""
import pathlib
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tests" / "e2e")]
import networks
import reference


def outputs(case):
    weights = case.weights()
    net = networks.NETWORKS[case.network](case.channels, **case.shape)
    state = {name: torch.from_numpy(array) for name, array in weights.items()}
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
    net = net.double().eval()
    results = {"crc": np.uint32(case.checksum(weights))}
    for size in case.sizes:
        image = case.image(size)
        x = torch.from_numpy(np.atleast_3d(image)).permute(2, 0, 1)[None].double()
        with torch.no_grad():
            y = net(x, sigma=reference.SIGMA)
        part = y if case.network == "drunet" else y - x
        ratio = float(part.square().mean().sqrt() / x.square().mean().sqrt())
        print(f"{case.name} {size[0]}x{size[1]}: the network's part is {ratio:.2f} of the image's")
        assert 0.4 < ratio < 5, "choose other gains"
        y = y[0].permute(1, 2, 0).float().numpy()
        results[f"{size[0]}x{size[1]}"] = y[..., 0] if case.channels == 1 else y
    return results


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else reference.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for case in reference.CASES:
        np.savez_compressed(folder / f"{case.name}.npz", **outputs(case))
    print(f"{sum(p.stat().st_size for p in folder.glob('*.npz')) / 1e6:.2f} MB in {folder}")


if __name__ == "__main__":
    main()
