"""stop.py PROGRAM: Ctrl-C ends a job at any point and leaves no partial file. The time it takes is printed, not checked."""
import json
import signal
import sys
import time

import numpy as np

from support import Bench, leftovers, picture, to_integers


def stop_after(bench, seconds, out, *args, env=None, number=signal.SIGINT):
    """Starts, waits, sends the signal: status, seconds until the end, standard error. None when it ended before the signal."""
    with open(bench.path("stderr.txt"), "w+") as err:
        process = bench.start(*args, "--quiet", env=env, stdout=err, stderr=err)
        time.sleep(seconds)
        ended = process.poll() is not None
        begin = time.monotonic()
        if not ended:
            process.send_signal(number)
        status = process.wait(600)
        took = time.monotonic() - begin
        err.seek(0)
        text = err.read().strip()
    what = " ".join(str(a) for a in args[:1] + args[3:]) + f" {env or ''}"
    if ended:
        bench.check(status == 0, f"{what}: was done after {seconds} s: {text}")
        return False
    if status == -signal.SIGINT and number == signal.SIGINT and not text:
        print(f"{what}: ended before it listened to signals")
        return False
    bench.check(status > 0 and "stopped" in text, f"{what}: stopped after {seconds} s in {took:.2f} s, {text}")
    bench.check(not leftovers(bench.folder) and not out.exists(), f"{what}: nothing is left: {leftovers(bench.folder)}")
    return True


def main():
    bench = Bench(sys.argv[1])
    image, out = bench.path("image.npy"), bench.path("out.npy")
    np.save(image, np.tile(to_integers(picture(500, 500), np.uint8), (3, 3, 1)))
    denoise = ("denoise", image, out, "--sigma", "0.1", "--model", "random:drunet")
    for seconds in (0.2, 1.0, 2.5):
        stop_after(bench, seconds, out, *denoise, "--memory", "3G", "--tile", "whole" if seconds < 2 else "auto")
    stop_after(bench, 1.5, out, *denoise, "--memory", "1G", env={"TESSERA_ISA": "reference"})
    stop_after(bench, 1.5, out, *denoise, "--memory", "1G", env={"TESSERA_QUEUE": "1"})
    for number in (signal.SIGUSR1, signal.SIGXCPU):
        stop_after(bench, 2, out, *denoise, "--memory", "1G", env={"TESSERA_ISA": "reference"}, number=number)
    stop_after(bench, 1.5, out, "reconstruct", out, "--problem", "tomo2d", "--size", "700")
    stop_after(bench, 1.5, out, "reconstruct", out, "--problem", "tomo3d", "--size", "120")

    folder, made, record = bench.path("folder"), bench.path("made"), bench.path("record.json")
    folder.mkdir()
    small = to_integers(picture(96, 96), np.uint8)
    for i in range(400):
        np.save(folder / f"{i:03}.npy", small)
    if stop_after(bench, 2.0, bench.path("none"), "denoise", folder, made, "--sigma", "0.1", "--json", record):
        told = json.loads(record.read_text())
        files = told["denoise"]["files"]
        done = sorted(f["name"] for f in files if "error" not in f)
        there = sorted(p.name for p in made.iterdir()) if made.exists() else []
        bench.check(told.get("interrupted") is True and len(files) == 400 and done == there,
                    f"the record lists the {len(there)} files that were done, and the others as stopped")
        bench.check(all(f["error"] == "stopped" for f in files if "error" in f), "the others have the error \"stopped\"")

    # In place, a file that is done looks like one that waits.
    told = bench.run("denoise", folder, folder, "--sigma", "0.1", "--overwrite", "--skip-existing")
    bench.check_refused(told, 2, "is an input and an output", "--skip-existing")
    if stop_after(bench, 2.0, bench.path("none"), "denoise", folder, folder, "--sigma", "0.1", "--overwrite", "--json", record):
        text = bench.path("stderr.txt").read_text().strip()
        left = [i for i in range(400) if np.array_equal(np.load(folder / f"{i:03}.npy"), small)]
        bench.check("goes on" not in text, f"nothing is promised: {text}")
        if left and left[0] > 0:  # a card may finish them in another order; then the record is named
            named = left == list(range(left[0], 400)) and f"after {left[0] - 1:03}.npy" in text
            bench.check(named or "--json" in text, f"those from {left[0]} on are left: {text}")
    bench.finish()


main()
