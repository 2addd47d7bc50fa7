"""test_torch.py PROGRAM LIBRARY: tensors as input and output, in torch's order of axes; skipped if torch is missing."""
import numpy as np

from common import COLOUR, picture, raises, skip, start


def main():
    bench, tessera = start()
    try:
        import torch
    except ImportError:
        skip("torch is not installed")
    image = picture(40, 56)
    tensor = torch.from_numpy(image).permute(2, 0, 1)  # channels first by strides alone
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        wanted = torch.from_numpy(denoise(image, 0.1)).permute(2, 0, 1)
        got = denoise(tensor, 0.1)
        bench.check(isinstance(got, torch.Tensor) and torch.equal(got, wanted), "(C,H,W)")
        bench.check(torch.equal(denoise(tensor.contiguous()[None], 0.1)[0], wanted), "(N,C,H,W)")
        bench.check(torch.equal(denoise(tensor, torch.tensor([0.1], dtype=torch.float64)), wanted), "sigma as a tensor")
        crop = tensor[:, 4:30, 3:50:2]
        bench.check(torch.equal(denoise(crop, 0.1), denoise(crop.contiguous(), 0.1)), "a crop")
        out = torch.full((2, 3, 40, 56), float("nan"))
        bench.check(denoise(tensor, 0.1, out=out[1]) is not None and torch.equal(out[1], wanted) and
                    bool(out[0].isnan().all()), "into a part of a tensor")
        small = (tensor * 255).round().to(torch.uint8)
        bench.check(np.array_equal(denoise(small, 0.1).permute(1, 2, 0).numpy(), denoise(small.permute(1, 2, 0).numpy(), 0.1)),
                    "uint8")
        plan = denoise.plan((1, 3, 40, 56), torch.float32, axes="NCHW")
        bench.check(torch.equal(plan.run(tensor[None], 0.1)[0], wanted), "a plan for torch's dtype")
        raises(bench, tessera.OptionError, ["bfloat16"], "an element type", lambda: denoise(tensor.to(torch.bfloat16), 0.1))
        raises(bench, tessera.OptionError, ["sigma"], "several sigmas", lambda: denoise(tensor, torch.rand(3)))
    bench.finish()


main()
