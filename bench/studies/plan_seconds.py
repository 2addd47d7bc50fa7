"""Compares planned with measured seconds on random jobs, after calibration.

    python bench/studies/plan_seconds.py [--jobs 20] [--seed 1] > seconds.jsonl

Network (bundled or random weights), size, tile and precision are random; every job runs in its own process. One run of each
network and precision calibrates the cache first. Every job runs three times; the run of median time is compared with its
own plan. Prints one JSON line per job with the three times, and the summary on standard error.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
import numpy as np
import support

RUNS = 3

def run(tessera, image, out, model, extra, env):
    command = [tessera, "denoise", image, out, "--model", model, "--sigma", "0.1", "--quiet", "--json", "-"] + extra
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        env = dict(os.environ, TESSERA_CACHE=str(work / "cache"))
        models = {"drunet-color-small": "drunet-color-small"}
        full = (64, 128, 256, 512)
        for network, weights in (("drunet", support.drunet(3, full, 4)), ("unet", support.unet(3, full)),
                                 ("dncnn", support.dncnn(3, 20, 64))):
            models[network] = str(work / f"{network}.safetensors")
            support.write_safetensors(models[network], weights)
        small = work / "small.npy"
        np.save(small, np.random.default_rng(0).random((384, 384, 3), np.float32))
        info = json.loads(subprocess.run([args.tessera, "info", "--quiet", "--json", "-"], check=True, capture_output=True).stdout)
        precisions = ["fp32", "bf16"] if info["info"]["devices"][0]["bf16"] else ["fp32"]
        for model in models.values():
            for precision in precisions:
                run(args.tessera, small, work / "out.npy", model, ["--precision", precision], env)
        within = 0
        for job in range(args.jobs):
            model = draw.choice(sorted(models))
            height, width = draw.randrange(96, 700), draw.randrange(96, 700)
            tile = draw.choice(["auto", "whole", "128", "256"])
            precision = draw.choice(precisions)
            image = work / "image.npy"
            np.save(image, np.random.default_rng(job).random((height, width, 3), np.float32))
            records = [run(args.tessera, image, work / "out.npy", models[model], ["--tile", tile, "--precision", precision], env)
                       for _ in range(RUNS)]
            records.sort(key=lambda r: r["measured"]["seconds"])
            record = records[RUNS // 2]
            planned, measured = record["plan"]["seconds"], record["measured"]["seconds"]
            within += abs(planned - measured) <= 0.25 * measured
            print(json.dumps({"study": "plan_seconds", "engine": "tessera", "model": model, "height": height, "width": width,
                              "tile": tile, "batch": record["plan"]["batch"], "precision": precision, "planned": planned, "measured": measured,
                              "ratio": planned / measured, "runs": [r["measured"]["seconds"] for r in records]}), flush=True)
        print(f"{within} of {args.jobs} jobs within 25 %", file=sys.stderr)


if __name__ == "__main__":
    main()
