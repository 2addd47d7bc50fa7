"""refusal.py PROGRAM: if a job is refused for memory, the number that the message names is accepted when it is typed back
unchanged: several files and models in one job, tiles, batches, halos, a device with separate memory, volumes."""
import json
import re
import sys

import numpy as np

from support import Bench, picture, to_integers, write_png

QUEUE = {"TESSERA_QUEUE": "1"}


def check_no_plan(bench, folder):
    """If no file fits, there is no plan to tell of."""
    result = bench.run("denoise", folder, bench.path("none"), "--memory", "1M", "--json", bench.path("none.json"))
    record = json.loads(bench.path("none.json").read_text())
    bench.check(result.status == 1 and "plan" not in record and "input " in result.out and "plan " not in result.out and "planned" not in result.out,
                f"no plan is told if no file fits: {result.out}{record.get('plan')}")


def check(bench, *args, env=None, limit="1M"):
    words = " ".join(str(a).replace(str(bench.folder) + "/", "") for a in args) + (" (own memory)" if env else "")
    refused = bench.run("plan", *args, "--memory", limit, env=env)
    said = list(set(re.findall(r"--memory (\d+[MGK]?) would do", refused.err)))  # a line for each file, all with the same number
    if not bench.check(refused.status == 1 and len(said) == 1 and f"--memory {limit}" in refused.err,
                       f"{words}: refuses {limit} and names a number; {refused.err.strip()}"):
        return
    enough = bench.run("plan", *args, "--memory", said[0], "--quiet", env=env)
    if not bench.check(enough.status == 0, f"{words}: the {said[0]} that were named do; {enough.err.strip()}"):
        return
    # A little less: some files of a job may fit, but what is named is still enough for all.
    less = bench.run("plan", *args, "--memory", f"{int(0.96 * int(said[0][:-1]) * 1024)}K", "--quiet", env=env)
    again = list(set(re.findall(r"--memory (\d+M) would do", less.err)))
    bench.check(less.status == 0 or again == said, f"{words}: a little less is refused with the same number; {less.err.strip()}")


def main():
    bench = Bench(sys.argv[1])
    folder, out = bench.path("mixed"), bench.path("out")
    folder.mkdir()
    for i, (height, width, channels) in enumerate(((400, 300, 3), (40, 2000, 1), (333, 555, 1), (900, 120, 3))):
        write_png(folder / f"{i}.png", to_integers(picture(height, width, channels), np.uint8))
    check_no_plan(bench, folder)
    result = bench.run("plan", "denoise", folder, out, "--sigma", "0.1", "--memory", "1M", "--quiet")
    bench.check(all(result.err.count(f"tessera: {path}: --memory 1M") == 1 for path in sorted(folder.iterdir())), f"every file is named; {result.err}")
    one = folder / "2.png"
    precisions = ["fp32", "bf16"] if bench.has_bf16() else ["fp32"]
    for env in (None, QUEUE):
        for extra in ((), ("--batch", "8"), ("--halo", "exact"), ("--tile", "150x90"), ("--tile", "whole")):
            for precision in precisions:
                check(bench, "denoise", folder, out, "--sigma", "0.1", "--precision", precision, *extra, env=env)
        check(bench, "denoise", one, bench.path("one.png"), "--sigma", "0.1", "--model", "random:drunet-gray", env=env, limit="1.5M")
        check(bench, "denoise", one, bench.path("one.png"), "--sigma", "0.1", "--truth", one, "--threads", "3", env=env, limit="1M")
        result = bench.path("result.npy")
        for problem in (("tomo2d", "--size", "96"), ("deblur", "--size", "128"), ("tomo3d", "--size", "48", "--prior", "volume"),
                        ("tomo3d", "--size", "48", "--prior", "slices")):
            check(bench, "reconstruct", result, "--problem", *problem, env=env)
    bench.finish()


main()
