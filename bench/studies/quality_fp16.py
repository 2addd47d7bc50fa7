"""Measures the loss of quality in half precision against fp32, on real images with the same noise.

    python bench/studies/quality_fp16.py build/tessera kodak24

Prints for every noise level the mean PSNR of a folder in either precision, their difference, and the
largest difference of one image. Less than 0.01 dB is expected; the status is 1 if it is more.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def run(args, sigma, precision, target):
    command = [args.program, "denoise", args.folder, target, "--model", args.model, "--add-noise", f"{sigma}/255", "--truth", args.folder,
               "--seed", "1", "--precision", precision, "--device", args.device, "--quiet", "--json", "-"]
    return json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--model", default="drunet-color-small")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sigmas", default="5,15,25,50")
    parser.add_argument("--precisions", default="fp32,fp16", help="the second is held against the first")
    parser.add_argument("--most", type=float, default=0.01, help="dB")
    args = parser.parse_args()
    precisions, worst = args.precisions.split(","), 0
    print(f"sigma | {' dB | '.join(precisions)} dB | difference | of one image, at most | files")
    with tempfile.TemporaryDirectory() as target:
        for sigma in args.sigmas.split(","):
            first, second = (run(args, sigma, precision, target) for precision in precisions)
            means = [record["quality"]["psnr_db"] for record in (first, second)]
            single = max(abs(a["psnr_db"] - b["psnr_db"]) for a, b in zip(first["denoise"]["files"], second["denoise"]["files"]))
            worst = max(worst, abs(means[1] - means[0]))
            print(f"{sigma} | {means[0]:.4f} | {means[1]:.4f} | {means[1] - means[0]:+.5f} | {single:.5f} | {first['input']['files']}", flush=True)
    print(f"largest difference {worst:.5f} dB: {'less' if worst < args.most else 'NOT less'} than {args.most} dB")
    return 0 if worst < args.most else 1


if __name__ == "__main__":
    sys.exit(main())
