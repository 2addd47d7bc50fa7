"""Defaults of problem files: the range and the noise of blurred pictures come from the measurements, and the record
says so. Integers are not scaled. A mistyped entry is recognised, and a stopped job leaves its record."""
import json
import math
import signal
import sys
import time

from support import Bench, leftovers, np

bench = Bench(sys.argv[1])
side, reach, noise = 64, 6, 0.01


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def problem(entries):
    bench.path("problem.json").write_text(json.dumps(entries))
    return bench.path("problem.json")


def solve(entries, *args):
    """The record's part, the result, and the PSNR that the record gives."""
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(entries), *(args or ("--iterations", 4)))
    if not record:
        return {}, np.zeros((side, side)), math.nan
    return record["reconstruct"], np.load(bench.path("out.npy")), record.get("quality", {}).get("psnr_db", math.nan)


def db(a, b):
    return -10 * math.log10(np.mean((np.float64(a) - b) ** 2) + 1e-12)


# --- two blurs of one picture, as floats of [0, 1] ---------------------------------------------------------------------

random = np.random.default_rng(5)
y, x = np.mgrid[0:side + 2 * reach, 0:side + 2 * reach] / (side + 2.0 * reach)
wide = np.clip(0.2 + 0.3 * x + 0.25 * (np.hypot(y - 0.4, x - 0.6) < 0.25) - 0.1 * ((9 * x + 5 * y) % 1 < 0.4), 0, 1)
truth = wide[reach:-reach, reach:-reach]
v, u = np.mgrid[-reach:reach + 1, -reach:reach + 1]
kernels = [np.exp(-u**2 / (2 * a * a) - v**2 / (2 * b * b)) for a, b in ((2.5, 1.0), (1.0, 2.5))]
seen = []
for kernel in kernels:
    kernel = kernel / kernel.sum()
    seen.append(sum(kernel[i, j] * wide[2 * reach - i:wide.shape[0] - i, 2 * reach - j:wide.shape[1] - j]
                    for i in range(2 * reach + 1) for j in range(2 * reach + 1)))
exact = np.concatenate(seen)
measured = np.float32(exact + noise * random.standard_normal(exact.shape))
plain = {"operator": "blur", "kernels": [save(f"k{i}.npy", kernel) for i, kernel in enumerate(kernels)],
         "measurement": save("y.npy", measured), "truth": save("truth.npy", np.float32(truth))}

own, given, best = solve({**plain, "noise": noise})
bench.check(own.get("noise_from") == "given" and own.get("range_from") == "default" and own.get("range") == [0, 1], "floats of [0, 1] are that; a noise that is given is taken")
own, image, psnr = solve(plain)
bench.check(own.get("noise_from") == "estimate" and 0.8 * noise < own["noise"] < 1.25 * noise, f"noise {noise} is estimated: {own.get('noise')}")
bench.check(abs(psnr - best) < 0.5, f"which gives what the right one gives: {psnr:.2f} and {best:.2f} dB")
own, _, _ = solve({**plain, "measurement": save("strong.npy", np.float32(measured + 0.05 * random.standard_normal(measured.shape))), "truth": "truth.npy"})
bench.check(0.04 < own.get("noise", 0) < 0.065, f"five times as much is seen too: {own.get('noise')}")
own, _, psnr = solve({**plain, "measurement": save("exact.npy", np.float32(exact))})
bench.check(abs(own.get("noise", 0) - 0.005) < 1e-9 and psnr > best - 0.5, f"without noise 0.005 of the range is taken, as less does not pay: {own.get('noise')}, {psnr:.2f} dB")
own, _, _ = solve({**plain, "measurement": save("small.npy", measured.reshape(2, side, side)[:, :6, :6].reshape(12, 6)), "truth": save("little.npy", np.float32(truth[:6, :6])),
                   "kernels": [save("one.npy", np.ones((1, 3)))] * 2}, "--iterations", 1)
bench.check(own.get("noise_from") == "default" and abs(own["noise"] / (own["range"][1] - own["range"][0]) - 0.01) < 1e-6, f"a picture too small for that: 0.01 of the range: {own.get('noise')}")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(plain), "--iterations", 1)
bench.check("estimated from the measurements" in result.out and "range     [0, 1] by default" in result.out, f"the summary says where they came from: {result}")
plan = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", problem(plain))
bench.check(bool(plan) and plan["reconstruct"].get("noise_from") == "estimate" and "noise" not in plan["reconstruct"], "a plan says what will be estimated")

for low in (-1000, 3000, 30000):  # blurs keep constants, so an offset must not matter
    there = {**plain, "measurement": save("there.npy", np.float32(low + 3000 * measured)), "truth": save("there_truth.npy", np.float32(low + 3000 * truth))}
    own, image, psnr = solve({**there, "range": [low, low + 3000], "noise": 3000 * noise})
    bench.check(own.get("range") == [low, low + 3000] and abs(psnr - best) < 0.3, f"a range from {low} on gives what one from 0 gives: {psnr:.2f} and {best:.2f} dB")
    bench.check(np.abs((image - low) / 3000 - given).max() < 0.02, "in its units")
    own, image, _ = solve(there)
    bench.check(own.get("range_from") == "data" and db((image - low) / 3000, truth) > db(given, truth) - 2, f"or found in the data: {own.get('range')}, {db((image - low) / 3000, truth):.2f} dB")

for factor in (0.05, 1e-6):
    own, image, _ = solve({**{k: v for k, v in plain.items() if k != "truth"}, "measurement": save("tiny.npy", np.float32(factor * measured))})
    bench.check(own.get("range_from") == "data" and db(image / factor, truth) > db(given, truth) - 1,
                f"floats in units of {factor} have a range of their own: {own.get('range')}, {db(image / factor, truth):.2f} dB")

# --- other scales, floats and integers -----------------------------------------------------------------------------------

ten = np.float32(measured * 200 - 4)
own, scaled, psnr = solve({**plain, "measurement": save("scaled.npy", ten), "truth": save("truth200.npy", np.float32(truth * 200 - 4))})
peak = 20 * math.log10((truth * 200 - 4).max() / 200)  # PSNR is relative to the largest value of the truth
bench.check(own.get("range_from") == "data" and abs(own["range"][1] - ten.max()) < 1e-3 and abs(own["range"][0] - min(0, ten.min())) < 1e-3, f"floats up to 200: the range is theirs: {own.get('range')}")
bench.check(db((scaled + 4) / 200, truth) > best - 1.5 and abs(psnr - peak - db((scaled + 4) / 200, truth)) < 0.05, f"and the result is in their units: {db((scaled + 4) / 200, truth):.2f} dB, PSNR {psnr:.2f}")
bench.check(160 * noise < own.get("noise", 0) < 250 * noise, f"and the noise too: {own.get('noise')}")
own, named, _ = solve({**plain, "measurement": "scaled.npy", "truth": "truth200.npy", "noise": 200 * noise, "range": own.get("range", [0, 1])})
above = scaled - np.minimum(scaled, ten.max())  # what a given range cuts off; one from the data does not
bench.check(np.abs(named - (scaled - above)).max() < 5, f"as if both were given, but for what is brighter than the measurements, {above.max():.2f}: {np.abs(named - (scaled - above)).max():.2f}")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**plain, "measurement": "scaled.npy"}), "--iterations", 1)
bench.check("from the measurements' values" in result.out, f"the summary says so: {result}")

for kind, most, origins in ((np.uint8, 255, ("type", "given")), (np.uint16, 65535, ("type",))):
    name, image8 = kind.__name__, np.rint(np.clip(measured, 0, 1) * most).astype(kind)
    whole = {**plain, "measurement": save("whole.npy", image8), "noise": noise * most}
    truths = {"its type": save("t_whole.npy", np.rint(truth * most).astype(kind)), "floats of [0, 1]": "truth.npy", "floats": save("t_float.npy", np.float32(truth * most))}
    for origin in origins:
        entries = whole if origin == "type" else {**whole, "range": [0, most]}
        own, result, _ = solve(entries)
        bench.check(own.get("range_from") == origin and own.get("range") == [0, most] and db(result / most, truth) > best - 1, f"{name}, range from {origin}: {db(result / most, truth):.2f} dB in its units")
        for what, file in truths.items():
            if origin == "type" or what != "floats of [0, 1]":
                _, _, psnr = solve({**entries, "truth": file}, "--iterations", 1)
                bench.check(psnr > 20, f"{name}, range from {origin}, a truth as {what}: {psnr:.2f} dB")
own, result, psnr = solve({**plain, "measurement": save("long.npy", np.rint(measured * 1000).astype(np.int32)), "truth": save("t_long.npy", np.rint(truth * 1000).astype(np.int32))})
bench.check(own.get("range_from") == "data" and db(result / 1000, truth) > best - 1.5 and abs(psnr - 20 * math.log10(truth.max()) - db(result / 1000, truth)) < 0.05, f"int32 up to 1000: {db(result / 1000, truth):.2f} dB, {psnr:.2f} dB")
save("dim.npy", np.rint(np.clip(measured, 0, 1) * 4095).astype(np.uint16))
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({key: value for key, value in {**plain, "measurement": "dim.npy"}.items() if key != "truth"}), "--iterations", 1)
bench.check(result.status == 0 and "range" in result.err and "65535" in result.err, f"12 bits in 16: a note asks for the range: {result}")

# 16 bits that are close together far from 0, as kelvins x 100, are restored as floats are.
for offset in (29000, 7000):
    warm = np.rint(measured * 2000 + offset)
    entries = {"operator": "blur", "kernels": plain["kernels"]}
    own, result, _ = solve({**entries, "measurement": save("warm.npy", np.uint16(warm))})
    floats, right, _ = solve({**entries, "measurement": save("warm_floats.npy", np.float32(warm))})
    found = np.allclose(own.get("range", 0), floats.get("range", 1), rtol=1e-6)
    bench.check(own.get("range_from") == "data" and found and db((result - offset) / 2000, truth) > db((right - offset) / 2000, truth) - 0.1,
                f"16 bits from {offset}: {db((result - offset) / 2000, truth):.2f} dB, {db((right - offset) / 2000, truth):.2f} dB as floats, {db((warm[:side] - offset) / 2000, truth):.2f} dB before: {own.get('range')}")
    own, result, psnr = solve({**entries, "measurement": "warm.npy", "noise": 2000 * noise, "truth": save("t_warm.npy", np.uint16(np.rint(truth * 2000 + offset)))})
    bench.check(own.get("noise_from") == "given" and abs(own.get("noise", 0) - 2000 * noise) < 0.01 and psnr > 20, f"with a noise and a truth in their units: {own.get('noise')}, {psnr:.2f} dB")

# --- integer views without a flat field, and mistyped entries --------------------------------------------------------

views = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": 12}, "measurement": save("counts.npy", random.integers(900, 1000, (12, 16)).astype(np.uint16))}
for more, told in (({}, True), ({"counts": False}, False), ({"flat": 1000}, False), ({"measurement": save("lines.npy", np.float32(random.random((12, 16))))}, False)):
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**views, **more}), "--iterations", 1)
    bench.check(result.status == 0 and ('"flat"' in result.err) == told, f"{more}: {'a note' if told else 'no note'} that counts need a flat field: {result}")
for entries, typed, meant in ((plain, "kernal", "kernel"), (plain, "nose", "noise"), (views, "center", "centre"), (plain, "weather", "measurement")):
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**entries, typed: 1}))
    bench.check_refused(result, 1, f'"{typed}"', "entries are operator, ", f", {meant}")
bench.check("vectors" not in result.err and "rotation" not in result.err, "entries of other operators are not named")

# --- a stopped job leaves its record -----------------------------------------------------------------------------------

out, record = bench.path("stopped.npy"), bench.path("record.json")
for entries in (["--problem", problem(plain)], ["--problem", "deblur", "--size", 64], ["--problem", "tomo2d", "--size", 64]):
    record.unlink(missing_ok=True)
    process = bench.start("reconstruct", out, *entries, "--iterations", 1000000, "--json", record, "--quiet", stdout=open(bench.path("o.txt"), "w"), stderr=open(bench.path("e.txt"), "w"))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    status, text = process.wait(300), bench.path("e.txt").read_text()
    if status == -signal.SIGINT:
        print("it ended before it listened to signals")
        continue
    told = json.loads(record.read_text()) if record.exists() else {}
    own = told.get("reconstruct", {})
    bench.check(status == 130 and "stopped" in text and told.get("interrupted") is True, f"{entries}: the record of a stopped job: {status} {text.strip()} {told.get('interrupted')}")
    if own:
        bench.check(own["stopped"] == "interrupted" and all(it["sigma"] > 0 for it in own["iterations"]) and "quality" not in told, f"it has the {len(own['iterations'])} iterations that were done")
    bench.check(not out.exists() and not leftovers(bench.folder), "and no picture is written")
bench.finish()
