"""tiles.py PROGRAM: with --halo exact a tiled run gives the whole image's bits for any tile, batch and number of threads.

The networks are narrow, so that it takes seconds, but wide enough to use Winograd and the matrix kernels.
"""
import sys

import numpy as np

from support import Bench, dncnn, drunet, picture, psnr, unet, write_safetensors

SIZES = ((256, 320), (481, 321))
# The DRUNet of four blocks looks nearly 200 pixels far: a long strip, so that its windows are not the whole image.
NETWORKS = (("drunet", drunet(), SIZES), ("drunet of 4 blocks", drunet(blocks=4), ((96, 1031),)), ("unet", unet(), SIZES),
            ("dncnn", dncnn(), SIZES), ("dncnn of 17 layers", dncnn(depth=17), ((200, 333),)))
WAYS = ({"--tile": "128", "--batch": "1"}, {"--tile": "64x200", "--batch": "3", "--threads": "1"},
        {"--tile": "200x96", "--batch": "auto", "--threads": "3"}, {"--tile": "300", "--batch": "2", "--threads": "2"})


def main():
    bench = Bench(sys.argv[1])
    precisions = ["fp32", "bf16"] if bench.has_bf16() else ["fp32"]
    for name, weights, sizes in NETWORKS:
        model = write_safetensors(bench.path(f"{name}.safetensors"), weights)
        for size in sizes:
            source = bench.path("in.npy")
            np.save(source, picture(*size))
            for precision in precisions:
                what = f"{name} {size[0]}x{size[1]} {precision}"

                def run(**options):
                    target = bench.path("out.npy")
                    target.unlink(missing_ok=True)
                    flat = [word for pair in options["options"].items() for word in pair]
                    record = bench.record("denoise", source, target, "--model", model, "--sigma", "0.1", "--precision",
                                          precision, *flat)
                    return (target.read_bytes(), record["plan"]) if record else (b"", {"tiles": 0})

                whole, plan = run(options={"--tile": "whole"})
                values = np.load(bench.path("out.npy"))
                bench.check(plan["tiles"] == 1 and bool(np.isfinite(values).all()), f"{what}: whole, finite")
                for threads in ("1", "2", "3"):
                    again, _ = run(options={"--tile": "whole", "--threads": threads})
                    bench.check(again == whole, f"{what}: {threads} thread(s) give the same bits")
                for way in WAYS:
                    tiled, plan = run(options={"--halo": "exact", **way})
                    words = " ".join(f"{k} {v}" for k, v in way.items())
                    bench.check(tiled == whole and plan["tiles"] > 1,
                                f"{what}: {plan['tiles']} exact tiles equal the whole ({words})")
                tiled, plan = run(options={"--halo": "0", "--tile": "128"})
                bench.check(tiled != whole and plan["tiles"] > 1, f"{what}: without a halo the tiles show")
                tiled, plan = run(options={"--halo": "auto", "--tile": "128"})
                close = psnr(np.load(bench.path("out.npy")), values, float(np.abs(values).max()))
                bench.check(close > 50, f"{what}: --halo auto ({plan.get('halo')}) is {close:.1f} dB from the whole")
    bench.finish()


main()
