"""stop_look.py PROGRAM: signals are heard while measurements are read and inspected. A full inspection, which `plan` makes,
is measured first; a job that is stopped early must end within a small part of the time that it had left."""
import json
import signal
import sys
import time

from support import Bench, leftovers, np

EARLY, SOON = 0.25, 0.35  # of a full inspection: when the signal comes, and how long the end may take
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

bench = Bench(sys.argv[1])
random = np.random.default_rng(5)
out, record = bench.path("out.npy"), bench.path("record.json")


def save(name, array):
    np.save(bench.path(name), array.astype(np.float32))
    return name


def problem(name, **entries):
    path = bench.path(f"{name}.json")
    path.write_text(json.dumps(entries))
    return path


def stop(full, number, *args):
    """Status and seconds from the signal to the end."""
    with open(bench.path("stderr.txt"), "w+") as err:
        process = bench.start(*args, "--quiet", "--json", record, stdout=err, stderr=err)
        time.sleep(EARLY * full)
        early = process.poll() is None
        begin = time.monotonic()
        if early:
            process.send_signal(number)
        status = process.wait(600)
        took = time.monotonic() - begin
        err.seek(0)
        text = err.read().strip()
    bench.check(early and status == 128 + number and "stopped" in text, f"{args[0]}, {number.name}: status {status}, {text!r}")
    bench.check(took < SOON * full, f"{args[0]}, {number.name}: ends after {took:.2f} s, a full inspection takes {full:.2f} s")
    bench.check(not leftovers(bench.folder) and not out.exists(), f"nothing is left: {leftovers(bench.folder)}")


def look(path):
    begin = time.monotonic()
    if not bench.record("plan", "reconstruct", out, "--problem", path, "--threads", 1):
        return
    full = time.monotonic() - begin
    stop(full, signal.SIGINT, "plan", "reconstruct", out, "--problem", path, "--threads", 1)
    bench.check(not record.exists(), "a plan that is stopped has no record")
    for number in SIGNALS:
        stop(full, number, "reconstruct", out, "--problem", path, "--threads", 1)
        told = json.loads(record.read_text()) if record.exists() else {}
        bench.check(told.get("interrupted") is True and told.get("command") == "reconstruct", f"{number.name}: the record says so: {told}")
        record.unlink(missing_ok=True)


views, columns = 1600, 1400
across = np.arange(columns) - 0.5 * columns
sinogram = 100 * np.exp(-(across / 280) ** 2) + random.normal(0, 0.5, (views, columns))
look(problem("sinogram", operator="radon", measurement=save("sinogram.npy", sinogram), angles={"from": 0, "to": 360, "count": views}, centre="auto"))

views, side = 300, 180
turn, zero = 2 * np.pi * np.arange(views) / views, np.zeros(views)
s, c = np.sin(turn), np.cos(turn)
np.save(bench.path("vectors.npy"), np.stack([400 * s, -400 * c, zero, -200 * s, 200 * c, zero, 1.5 * c, 1.5 * s, zero, zero, zero, 1.5 + zero], 1))
at = (np.arange(side) - 0.5 * side) / 40
cone = 50 * np.exp(-(at[:, None] ** 2 + at ** 2)) + random.normal(0, 0.3, (views, side, side))
look(problem("cone", operator="cone", measurement=save("cone.npy", cone), vectors="vectors.npy", volume=[side] * 3))

bench.finish()
