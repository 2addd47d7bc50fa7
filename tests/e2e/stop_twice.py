"""stop_twice.py PROGRAM: two signals in quick succession, as launchers and supervisors send them, stop a job like one: with its record and the status
of one of them (which is heard first is the system's choice). A second one that comes later ends it at once. Nothing partial is left in either case."""
import json
import os
import random
import signal
import sys
import time

from support import Bench, leftovers, np, picture, to_integers

bench = Bench(sys.argv[1])
random.seed(3)
PAIRS = [(one, two) for one in (signal.SIGINT, signal.SIGTERM) for two in (signal.SIGINT, signal.SIGTERM)]
record, out = bench.path("record.json"), bench.path("out.npy")

image, folder, made = bench.path("image.npy"), bench.path("folder"), bench.path("made")
np.save(image, np.tile(to_integers(picture(500, 500), np.uint8), (3, 3, 1)))
folder.mkdir()
for i in range(400):
    np.save(folder / f"{i:03}-{'long' * 20}.npy", to_integers(picture(96, 96), np.uint8))
views = 1000
np.save(bench.path("views.npy"), np.random.default_rng(1).normal(1, 0.1, (views, 700)).astype(np.float32))
bench.path("scan.json").write_text(json.dumps({"operator": "radon", "measurement": "views.npy", "angles": {"from": 0, "to": 180, "count": views}}))
JOBS = {
    "a picture": ("denoise", image, out, "--sigma", "0.1", "--model", "random:drunet"),
    "a folder": ("denoise", folder, made, "--sigma", "0.1"),
    "a scan": ("reconstruct", out, "--problem", bench.path("scan.json"), "--save-measurement", bench.path("m.npy")),
    "blurs": ("reconstruct", out, "--problem", "deblur", "--size", "500", "--side-by-side", bench.path("compare.png")),
}


def twice(what, delay, pause, one, two):
    record.unlink(missing_ok=True)
    with open(bench.path("stderr.txt"), "w+") as err:
        process = bench.start(*JOBS[what], "--quiet", "--json", record, stderr=err)
        time.sleep(delay)
        early = process.poll() is None
        process.send_signal(one)
        sent = time.monotonic()
        time.sleep(pause)
        process.send_signal(two)
        apart = time.monotonic() - sent
        status = process.wait(300)
        err.seek(0)
        text = err.read().strip()
    if apart > 0.05 and "ended at once" in text:
        print(f"the machine is busy: {apart:.2f} s lay between the signals")
        return twice(what, delay, pause, one, two)
    how = f"{what}: {one.name}, {two.name} {pause} s later, after {delay:.2f} s: status {status}, {text!r}"
    bench.check(not leftovers(bench.folder), f"{how}: nothing is left: {leftovers(bench.folder)}")
    if status in (-signal.SIGINT, -signal.SIGTERM) and not text:
        print(f"{how}: ended before it listened to signals")
        return
    told = json.loads(record.read_text()) if record.exists() else {}
    bench.check(early and status - 128 in (one, two) and "stopped" in text, how)
    bench.check(told.get("interrupted") is True, f"{how}: the record says so: {bool(told)}")


for what in JOBS:
    for one, two in PAIRS:
        twice(what, random.uniform(0.3, 2), random.choice((0, 0.001, 0.01)), one, two)

# The record of the folder is longer than a pipe holds, and nobody reads it: the job cannot end by itself.
pipe = bench.path("pipe")
os.mkfifo(pipe)
reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
with open(bench.path("stderr.txt"), "w+") as err:
    process = bench.start(*JOBS["a folder"], "--quiet", "--json", pipe, stderr=err)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    time.sleep(2)
    waits = process.poll() is None
    process.send_signal(signal.SIGINT)
    status = process.wait(300)
    err.seek(0)
    text = err.read().strip()
os.close(reader)
bench.check(waits and status == 128 + signal.SIGINT and "ended at once" in text, f"a late second signal: waits {waits}, status {status}, {text!r}")
bench.check(not leftovers(bench.folder), f"nothing is left: {leftovers(bench.folder)}")
bench.finish()
