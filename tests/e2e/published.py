"""published.py PROGRAM set12|bsd68: published weights reach their published PSNR; the bundled models beat DnCNN.

Needs TESSERA_DATA. Noise is added by the program, not clipped and not rounded, as in
the papers.
"""
import os
import pathlib
import sys

from support import Bench, skip


def psnr_of(bench, folder, level, model=None):
    model = ["--model", model] if model else []
    record = bench.record("denoise", folder, bench.path("out"), "--truth", folder, "--add-noise", f"{level}/255", *model)
    return record["quality"]["psnr_db"] if record else float("nan")


def check_near(bench, data, images, level, weights, published, margin):
    got = psnr_of(bench, data / images, level, data / "weights" / weights)
    bench.check(abs(got - published) <= margin, f"{weights} on {images} at {level}/255: {got:.3f} dB, published {published} dB")


def check_above(bench, data, images, level, bar):
    got = psnr_of(bench, data / images, level)
    bench.check(got > bar, f"the bundled model on {images} at {level}/255: {got:.3f} dB, DnCNN's published {bar} dB")


def main():
    data = os.environ.get("TESSERA_DATA", "")
    if not data:
        skip("TESSERA_DATA names no folder; set it to one with set12, bsd68, kodak24 and weights")
    data = pathlib.Path(data)
    needed = {"set12": ["set12"], "bsd68": ["bsd68", "kodak24"]}[sys.argv[2]] + ["weights"]
    for name in needed:
        if not (data / name).is_dir():
            skip(f"{data} has no folder {name}")
    bench = Bench(sys.argv[1])
    if sys.argv[2] == "set12":
        check_near(bench, data, "set12", 25, "kair_dncnn_25.pth", 30.44, 0.05)
    else:
        check_near(bench, data, "bsd68", 25, "kair_dncnn_25.pth", 29.23, 0.03)
        check_near(bench, data, "bsd68", 15, "saoyan_dncnn_s15.pth", 31.7, 0.05)
        check_above(bench, data, "kodak24", 25, 32.03)
        check_above(bench, data, "bsd68", 25, 29.23)
    bench.finish()


main()
