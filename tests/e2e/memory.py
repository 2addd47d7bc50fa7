"""memory.py PROGRAM COUNT [SEED]: random jobs, each in a fresh process: planned, counted and resident bytes agree.

The promise: |planned total - growth of the resident peak| <= 1 % + 8 MiB, a --memory limit is kept
or refused, and `tessera plan` reports the same bytes as the run. The peak is also measured from outside, until the end of
the process.
"""
import random
import re
import sys

import numpy as np

from support import MIB, Bench, dncnn, drunet, picture, to_integers, unet, write_png, write_safetensors


def models(bench):
    made = {"drunet": drunet(), "drunet-wide": drunet(widths=(64, 64, 128, 128), blocks=1), "drunet-gray": drunet(1),
            "unet": unet(), "unet-gray": unet(1), "dncnn": dncnn(), "dncnn-deep": dncnn(depth=17, width=64),
            "dncnn-gray": dncnn(1)}
    return [(name, write_safetensors(bench.path(f"{name}.safetensors"), w)) for name, w in made.items()]


def random_case(rng, bench, known, bf16):
    """(words for the terminal, arguments)"""
    name, model = rng.choice(known)
    height, width = rng.randint(16, 700), rng.randint(16, 700)
    channels = 1 if name.endswith("gray") and rng.random() < 0.5 else 3
    image = picture(height, width, channels, seed=rng.randint(1, 9999))
    suffix = rng.choice([".png", ".png", ".npy"])
    source, target = bench.path("in" + suffix), bench.path("out" + suffix)
    if suffix == ".npy":
        np.save(source, image if rng.random() < 0.5 else to_integers(image, np.uint8))
    else:
        write_png(source, to_integers(image, rng.choice([np.uint8, np.uint16])))
    halo = rng.choice(["auto", "exact", str(rng.randint(0, 64))])
    # An exact halo on small tiles computes everything many times over: minutes, and nothing new.
    tile = rng.choice(["auto", "whole", f"{rng.randint(200, 500)}x{rng.randint(200, 500)}"] if halo == "exact" else
                      ["auto", "whole", str(rng.randint(64, 400)), f"{rng.randint(48, 400)}x{rng.randint(48, 400)}"])
    args = [source, target, "--model", model, "--sigma", "0.1", "--tile", tile, "--halo", halo,
            "--batch", rng.choice(["auto", "1", "2", "4"]), "--precision", rng.choice(["fp32", "bf16"] if bf16 else ["fp32"]),
            "--threads", rng.choice(["1", "2", "3"])]
    if rng.random() < 0.4:
        args += ["--truth", source]
    words = f"{name} {height}x{width}x{channels}{suffix} " + " ".join(map(str, args[6:]))
    return words.replace(str(bench.folder) + "/", ""), args


def check_run(bench, words, args, limit=None):
    """Plan, run, compare; the limit is in bytes."""
    planned = bench.record("plan", "denoise", *args)
    result = bench.run("denoise", *args, "--json", "-", "--quiet", watch=True)
    if not planned or not bench.check(result.status == 0, f"{words}: runs; {result.err.strip()}"):
        return
    record = result.record
    plan, measured = record["plan"], record["measured"]
    total, counted = plan["peak_bytes"]["total"], measured["peak_bytes"]["total"]
    bench.check(plan["peak_bytes"] == planned["plan"]["peak_bytes"] and
                all(plan[key] == planned["plan"][key] for key in ("tile", "tiles", "halo", "batch")),
                f"{words}: `tessera plan` tells the same {total} bytes (it says {planned['plan']['peak_bytes']['total']})")
    bench.check(abs(total - counted) <= 0.01 * counted, f"{words}: planned {total}, counted {counted}")
    room = 0.01 * total + 8 * MIB
    grown = measured["resident_bytes"] - measured["overhead_bytes"]
    bench.check(abs(total - grown) <= room, f"{words}: planned {total / MIB:.1f} MiB, resident grew by {grown / MIB:.1f} MiB")
    if limit:
        bench.check(total <= limit, f"{words}: planned {total / MIB:.1f} MiB within the limit of {limit / MIB:.1f} MiB")
        outside = result.peak - measured["overhead_bytes"]
        bench.check(outside <= limit + room, f"{words}: seen from outside, to the end, {outside / MIB:.1f} MiB above the "
                                             f"start, limit {limit / MIB:.1f} MiB")


def check_limit(bench, rng, words, args):
    """A limit between half of what the smallest tiles need and what the whole image needs."""
    args = [a for a in args]
    args[args.index("--tile") + 1] = "auto"
    whole = bench.record("plan", "denoise", *args[:args.index("--tile")], "--tile", "whole", *args[args.index("--halo"):])
    refused = bench.run("plan", "denoise", *args, "--memory", "1M")
    said = re.search(r"--memory (\d+)M would do", refused.err)
    bench.check_refused(refused, 1, "--memory", "too little")
    if not whole or not said:
        return
    least, most = int(said.group(1)) * MIB, whole["plan"]["peak_bytes"]["total"]
    enough = bench.run("plan", "denoise", *args, "--memory", f"{said.group(1)}M")
    bench.check(enough.status == 0, f"{words}: the {said.group(1)} MiB that the message asks for are enough; {enough.err.strip()}")
    limit = int(rng.uniform(0.5 * least, max(most, least)))
    args += ["--memory", str(limit)]
    if bench.run("plan", "denoise", *args, "--quiet").status == 0:
        check_run(bench, f"{words} --memory {limit / MIB:.1f}M", args, limit)
    else:
        bench.check(limit < least, f"{words}: refuses {limit / MIB:.1f} MiB only below the {least / MIB:.0f} MiB it names")
        bench.check_refused(bench.run("denoise", *args, "--quiet"), 1, "--memory", "too little")


def check_folder(bench):
    """Images of different shapes, models of gray and colour: one job, one limit."""
    folder = bench.path("mixed")
    folder.mkdir()
    for i, (height, width, channels) in enumerate(((400, 300, 3), (40, 2000, 1), (333, 555, 1), (120, 1500, 3))):
        write_png(folder / f"{i}.png", to_integers(picture(height, width, channels), np.uint8))
    common = [folder, bench.path("mixed-out"), "--sigma", "0.1", "--halo", "32"]
    whole = bench.record("plan", "denoise", *common)["plan"]["peak_bytes"]
    for limit in (int(0.9 * whole["total"]), int(0.7 * whole["total"])):
        check_run(bench, f"a mixed folder, --memory {limit / MIB:.1f}M", common + ["--memory", str(limit)], limit)


def check_narrow_tiles(bench, known):
    """Tiles much smaller than their halo: near the edges every window has another size."""
    write_png(bench.path("narrow.png"), to_integers(picture(72, 240, 1), np.uint8))
    for tile, halo in (("4x64", "32"), ("64x4", "32"), ("8", "64")):
        args = [bench.path("narrow.png"), bench.path("narrow-out.png"), "--model", dict(known)["dncnn-gray"], "--tile", tile]
        check_run(bench, f"dncnn-gray 72x240 --tile {tile} --halo {halo}", args + ["--halo", halo])


def main():
    bench = Bench(sys.argv[1])
    count, seed = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    known, bf16 = models(bench), bench.has_bf16()
    for i in range(count):
        words, args = random_case(rng, bench, known, bf16)
        check_run(bench, words, args)
        if i % 2 == 0:
            check_limit(bench, rng, words, args)
        if i % 10 == 0:  # a run without a cache measures rates at its end: that may not break a limit either
            for file in bench.cache.glob("*"):
                file.unlink()
    check_narrow_tiles(bench, known)
    check_folder(bench)
    bench.finish()


main()
