"""queued.py PROGRAM: the queue to a device with separate memory, used with the CPU (TESSERA_QUEUE=1), gives the same files.

Sample types, alpha, a gray model on colours, added noise, truth, tiles and batches; folders of mixed sizes with several
files at once, a broken one among them; planned and counted bytes; limits; Ctrl-C.
"""
import json
import signal
import sys
import time

import numpy as np

from support import MIB, Bench, dncnn, drunet, leftovers, picture, to_integers, unet, write_png, write_safetensors

QUEUE = {"TESSERA_QUEUE": "1"}
# Half of the memory cases cut the image: the planned bytes must hold for tiles too.
WAYS = ((), ("--tile", "64x80", "--batch", "3", "--halo", "exact"), ("--tile", "96", "--batch", "2", "--halo", "16"),
        ("--tile", "48x300", "--halo", "8", "--threads", "3"))


def check_bytes(bench, record, what):
    plan, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    bench.check(plan == counted, f"{what}: planned {plan}, counted {counted}")
    pinned = record["plan"]["host_bytes"]
    bench.check(0 < pinned <= 256 * MIB and record["measured"]["host_bytes"] == pinned, f"{what}: {pinned} bytes pinned")
    bench.check(0 < record["measured"]["gpu_busy"] <= 1.001, f"{what}: busy {record['measured']['gpu_busy']:.2f}")


def check_one(bench, source, model, *args):
    files, quality = [], []
    for env in ({}, QUEUE):
        target = bench.path("out" + source.suffix)
        target.unlink(missing_ok=True)
        record = bench.record("denoise", source, target, "--model", model, "--sigma", "0.1", *args, env=env)
        if not record:
            return
        files.append(target.read_bytes())
        quality.append(record.get("quality"))
    words = f"{source.name} {model.stem} {' '.join(map(str, args))}"
    bench.check(files[0] == files[1] and quality[0] == quality[1], f"{words}: the same bits")
    check_bytes(bench, record, words)


def check_images(bench):
    colour = write_safetensors(bench.path("drunet.safetensors"), drunet(widths=(16, 16, 16, 16)))
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=4, width=16))
    plain = write_safetensors(bench.path("unet.safetensors"), unet(widths=(16, 16, 16, 16)))
    sources = []
    for name, dtype, channels in (("rgb8", np.uint8, 3), ("rgb16", np.uint16, 3), ("rgba8", np.uint8, 4), ("rgba16", np.uint16, 4)):
        sources.append(bench.path(f"{name}.png"))
        write_png(sources[-1], to_integers(picture(131, 203, channels), dtype))
    for name, dtype in (("float", np.float32), ("uint32", np.uint32)):
        sources.append(bench.path(f"{name}.npy"))
        image = picture(131, 203)
        np.save(sources[-1], image if dtype == np.float32 else to_integers(image, dtype))
    for i, source in enumerate(sources):
        scale = ("--range", "type")
        for way in WAYS:
            check_one(bench, source, (colour, gray, plain)[i % 3], *way, *scale)
        check_one(bench, source, gray, *WAYS[i % 4], *scale)
        check_one(bench, source, colour, *WAYS[1], "--add-noise", "0.1", "--seed", "3", *scale)
        if "rgba" not in source.name:
            check_one(bench, source, colour, *WAYS[2], "--add-noise", "0.1", "--truth", source, *scale)
    return colour


def check_folder(bench, model):
    """Several files at once: each as if it were alone, errors told for their file, the others done."""
    folder, rng = bench.path("mixed"), np.random.default_rng(1)
    folder.mkdir()
    for i in range(14):
        height, width = (int(v) for v in rng.integers(20, 320, 2))
        image = to_integers(picture(height, width, seed=i), np.uint8)
        write_png(folder / f"{i:02}.png", image) if i % 3 else np.save(folder / f"{i:02}.npy", image)
    (folder / "broken.png").write_bytes((folder / "01.png").read_bytes()[:300])
    outs = []
    for env, extra in (({}, ()), (QUEUE, ("--threads", "4")), (QUEUE, ("--threads", "1")), (QUEUE, ("--threads", "4", "--memory", "16M"))):
        out = bench.path(f"mixed-out{len(outs)}")
        result = bench.run("denoise", folder, out, "--model", model, "--sigma", "0.1", "--halo", "exact", "--json", bench.path("r.json"),
                           "--quiet", *extra, env=env)
        bench.check(result.status == 1 and "broken" in result.err and "1 of 15" in result.err, f"one file is broken: {result}")
        outs.append({p.name: p.read_bytes() for p in sorted(out.iterdir())})
        bench.check(len(outs[-1]) == 14 and outs[-1] == outs[0], f"{env} {' '.join(extra)}: {len(outs[-1])} files, the same bits")
    record = json.loads(bench.path("r.json").read_text())
    check_bytes(bench, record, "a folder within 16M")
    bench.check(record["plan"]["peak_bytes"]["total"] <= 16 * MIB and record["plan"]["tiles"] > 1, "the limit is kept, by tiles")
    bench.check(len(record["denoise"]["files"]) == 15 and sum("error" in f for f in record["denoise"]["files"]) == 1,
                "every file is listed once")


def check_plan(bench, model):
    source = bench.path("rgb8.png")
    args = (source, bench.path("p.png"), "--model", model, "--sigma", "0.1", "--memory", "8M", "--halo", "16")
    planned = bench.record("plan", "denoise", *args, env=QUEUE)
    ran = bench.record("denoise", *args, env=QUEUE)
    if planned and ran:
        bench.check(planned["plan"]["peak_bytes"] == ran["plan"]["peak_bytes"], "`plan` tells the same bytes as the run")
    bench.check_refused(bench.run("denoise", *args[:-3], "1M", env=QUEUE), 1, "--memory", "too little")


def check_limits(bench):
    """Every size finds a cut under every limit that its smallest tiles fit."""
    folder, dice = bench.path("sizes"), np.random.default_rng(1)
    folder.mkdir()
    for i in range(60):
        shape = int(dice.integers(500, 3000)), int(dice.integers(700, 2600)), 3
        np.lib.format.open_memmap(folder / f"{i:02}.npy", mode="w+", dtype=np.uint8, shape=shape)  # sparse: only headers are read
    for limit in (200, 250, 310, 400, 560, 900):
        for env in ({}, QUEUE):
            record = bench.record("plan", "denoise", folder, bench.path("none"), "--model", "random:drunet", "--sigma", "0.1",
                                  "--memory", f"{limit}M", env=env)
            total = record["plan"]["peak_bytes"]["total"] if record else 0
            bench.check(0 < total <= limit * MIB, f"60 sizes within {limit}M{' on a card' if env else ''}: {total / MIB:.1f}M")


def check_interrupt(bench, model):
    folder, out = bench.path("long"), bench.path("long-out")
    folder.mkdir()
    for i in range(40):
        write_png(folder / f"{i:02}.png", to_integers(picture(400, 400, seed=i), np.uint8))
    process = bench.start("denoise", folder, out, "--model", model, "--sigma", "0.1", "--tile", "64", "--threads", "4", "--quiet", env=QUEUE,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    deadline = time.monotonic() + 60
    while not (out.exists() and leftovers(out)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    status = process.wait(60)
    bench.check(status == 130 and not leftovers(out), f"Ctrl-C: status {status}, {len(list(out.iterdir()))} finished files are kept")


def main():
    bench = Bench(sys.argv[1])
    model = check_images(bench)
    check_folder(bench, model)
    check_plan(bench, model)
    check_limits(bench)
    check_interrupt(bench, model)
    bench.finish()


main()
