"""limit.py PROGRAM: the full-width DRUNet (125 MiB of weights) on 11 megapixels within --memory 300M, from PNG and JPEG."""
import sys

import numpy as np

from support import MIB, Bench, dncnn, drunet, picture, to_integers, write_png, write_safetensors

LIMIT = 300 * MIB


def check(bench, source, target, model):
    result = bench.run("denoise", source, target, "--model", model, "--sigma", "0.1", "--memory", "300M", "--halo", "auto",
                       "--quiet", "--json", "-", watch=True, timeout=3000)
    if not bench.check(result.status == 0 and target.exists(), f"{source.name}: runs; {result.err.strip()}"):
        return
    record = result.record
    total, measured = record["plan"]["peak_bytes"]["total"], record["measured"]
    bench.check(total <= LIMIT, f"{source.name}: planned {total / MIB:.1f} MiB")
    bench.check(measured["resident_bytes"] <= LIMIT + measured["overhead_bytes"],
                f"{source.name}: resident peak {measured['resident_bytes'] / MIB:.1f} MiB, of which "
                f"{measured['overhead_bytes'] / MIB:.1f} MiB were there before the plan")
    bench.check(measured["overhead_bytes"] <= 64 * MIB, f"{source.name}: overhead {measured['overhead_bytes'] / MIB:.1f} MiB")
    bench.check(result.peak <= LIMIT + measured["overhead_bytes"], f"{source.name}: seen from outside, to the end, "
                                                                   f"{result.peak / MIB:.1f} MiB")
    print(f"{source.name}: {measured['seconds']:.0f} s, planned {record['plan']['seconds']:.0f} s, tile "
          f"{record['plan']['tile']}, halo {record['plan']['halo']}, batch {record['plan']['batch']}")


def main():
    bench = Bench(sys.argv[1])
    which = sys.argv[2:] or ["png", "jpg"]
    model = write_safetensors(bench.path("drunet.safetensors"), drunet(widths=(64, 128, 256, 512), blocks=4))
    source = bench.path("big.png")
    write_png(source, to_integers(picture(4096, 2733), np.uint8))
    if "png" in which:
        check(bench, source, bench.path("out.png"), model)
    if "jpg" in which and bench.has_gdal():
        small = write_safetensors(bench.path("dncnn.safetensors"), dncnn(depth=3, width=8))
        if bench.record("denoise", source, bench.path("big.jpg"), "--model", small):
            check(bench, bench.path("big.jpg"), bench.path("out.jpg"), model)
    elif "jpg" in which:
        print("no GDAL here: the JPEG is left out")
    bench.finish()


main()
