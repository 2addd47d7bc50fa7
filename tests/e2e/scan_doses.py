"""Scans of few photons: how the work begins depends on the noise, and never on the truth."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SIZE, VIEWS = 96, 90
ANGLES = np.arange(VIEWS) * 2.0
DISKS = [(0.6, 0, 0, 38), (0.4, 10, -19, 12), (-0.3, -21, 10, 9), (0.4, 14, 16, 4), (0.3, -8, -24, 3)]  # value, x, y, radius


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


AT = (np.arange(SIZE * 4) + 0.5) / 4 - SIZE / 2
TURN = np.deg2rad(ANGLES)[:, None]
clean = sum(v * 2 * np.sqrt(np.maximum(r ** 2 - (AT[None] - x * np.cos(TURN) + y * np.sin(TURN)) ** 2, 0)) for v, x, y, r in DISKS).reshape(VIEWS, SIZE, 4).mean(2)
truth = sum(v * ((AT[None] - x) ** 2 + (AT[:, None] - y) ** 2 <= r ** 2) for v, x, y, r in DISKS).reshape(SIZE, 4, SIZE, 4).mean((1, 3))
plain = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": VIEWS}, "measurement": "y.npy"}


def solve(entries, *args):
    """The record and the result."""
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {"reconstruct": {}}, np.zeros((SIZE, SIZE))
    return json.loads(bench.path("record.json").read_text()), np.load(bench.path("out.npy")).astype(float)


def psnr(image, right):
    return 10 * np.log10(right.max() ** 2 / np.mean((image - right) ** 2))


def backprojection(views, hann):
    """Filtered, with the same taps as the program's."""
    length = 256
    n = np.minimum(np.arange(length), length - np.arange(length))
    taps = np.where(n % 2 == 1, -1 / np.maximum(np.pi * n, 1) ** 2, 0.0)
    taps[0] = 0.25
    window = 0.5 + 0.5 * np.cos(2 * np.pi * np.fft.fftfreq(length)) if hann else 1
    filtered = np.fft.ifft(np.fft.fft(views, length, axis=1) * np.fft.fft(taps).real * window, axis=1).real[:, :SIZE]
    at = np.arange(SIZE) - (SIZE - 1) / 2
    total = sum(np.interp((SIZE - 1) / 2 + at[None] * np.cos(a) - at[:, None] * np.sin(a), np.arange(SIZE), row) for a, row in zip(TURN[:, 0], filtered))
    return np.maximum(total * np.pi / VIEWS, 0)


random = np.random.default_rng(5)

# --- the noise decides how the work begins --------------------------------------------------------------------------

scale = 3 / clean.max()  # the largest line integral is 3
for photons, gain in ((10000, 6), (1000, 8), (300, 8)):
    counts = random.poisson(photons * np.exp(-scale * clean))
    integrals = -np.log(np.maximum(counts, 0.5) / photons)
    entries = {**plain, "measurement": save("counts.npy", counts.astype(np.uint16)), "flat": photons}
    record, image = solve(entries)
    _, zero = solve(entries, "--init", "zero", "--sigma", "0.05:0.005")
    best = max(psnr(backprojection(integrals, hann), scale * truth) for hann in (False, True))
    own = record["reconstruct"]
    found, other = psnr(image, scale * truth), psnr(zero, scale * truth)
    bench.check(found > best + gain and found > other - 1, f"{photons} photons: {found:.2f} dB, best FBP {best:.2f} dB, from zero {other:.2f} dB, sigma {own.get('sigma')}")
    bench.check((own.get("sigma", 0) > 0.1) == (photons < 3000), f"the first sigma follows the noise: {own.get('sigma')}")
save("y.npy", clean.astype(np.float32))
record, _ = solve(plain, "--iterations", 1)
bench.check(record["reconstruct"].get("sigma") == 0.05 and record["reconstruct"].get("baseline") == "FBP, Ram-Lak", "a scan without noise begins as ever")
save("y.npy", (clean + 0.1 * clean.max() * random.normal(size=clean.shape)).astype(np.float32))
record, image = solve(plain)
bench.check(psnr(image, truth) > 26, f"noise of a tenth of the largest: {psnr(image, truth):.2f} dB, {record['reconstruct'].get('range')}")
record, _ = solve(plain, "--sigma", "0.07", "--iterations", 1)
bench.check(record["reconstruct"].get("sigma") == 0.07, "a given sigma remains")

# --- a ray without a count has half a count, whatever the dose ------------------------------------------------------

dense = 5 / clean.max()
counts = random.poisson(200 * np.exp(-dense * clean))
_, right = solve({**plain, "measurement": save("y.npy", -np.log(np.maximum(counts, 0.5) / 200).astype(np.float32))})
for what, array, more, unit in (("16 bits", counts.astype(np.uint16), {"flat": 200}, 1), ("whole floats", counts.astype(np.float32), {"flat": 200}, 1),
                                ("shares of the light", (counts / 200).astype(np.float32), {"flat": 1}, 0.005)):
    record, image = solve({**plain, "measurement": save("counts.npy", array), **more})
    own = record["reconstruct"]
    bench.check(psnr(image, dense * truth) > psnr(right, dense * truth) - 0.1 and own.get("starved", 0) == (counts == 0).sum() > 20 and abs(own.get("count_unit", 0) - unit) < 1e-6,
                f"{what}: {psnr(image, dense * truth):.2f} of {psnr(right, dense * truth):.2f} dB, {own.get('starved')} starved")
record, _ = solve({**plain, "measurement": save("counts.npy", np.exp(-dense * clean).astype(np.float32)), "flat": 1}, "--iterations", 1)
bench.check("count_unit" not in record["reconstruct"], f"floats that are no counts have no unit: {record['reconstruct'].get('count_unit')}")

# --- the truth changes nothing --------------------------------------------------------------------------------------

save("y.npy", (clean + 0.03 * clean.max() * random.normal(size=clean.shape)).astype(np.float32))
_, alone = solve(plain)
for name, array in (("right", truth), ("noise", random.random(truth.shape))):
    _, image = solve({**plain, "truth": save("truth.npy", array.astype(np.float32))})
    bench.check(np.array_equal(image, alone), f"a truth ({name}) leaves the result as it is: {psnr(image, truth):.2f}, {psnr(alone, truth):.2f} dB")
for noise in (0.01, 3):
    result = bench.run("reconstruct", bench.path("a.npy"), "--problem", "tomo2d", "--size", 64, "--angles", 60, "--noise", noise, "--save-measurement", bench.path("m.npy"))
    bench.check(result.status == 0, f"runs: {result}")
    _, image = solve({**plain, "angles": {"from": 0, "to": 180, "count": 60}, "measurement": "m.npy", "range": [0, 1], "noise": noise})
    bench.check(np.array_equal(image, np.load(bench.path("a.npy"))), f"a measurement of noise {noise} that is read back gives the same picture")

# --- a truth of integers has the units of the scan ------------------------------------------------------------------

save("y.npy", (200 * clean).astype(np.float32))
for kind in ("f4", "u1", "i2", "u2", "i4"):
    for more in ({}, {"range": [0, 220]}):
        record, image = solve({**plain, **more, "truth": save("truth.npy", np.rint(200 * truth).astype(kind))}, "--iterations", 2)
        error = np.mean((np.clip(image, 0, 220 if more else np.inf) - np.rint(200 * truth)) ** 2)
        right = 10 * np.log10((220 if more else np.rint(200 * truth).max()) ** 2 / error)
        said = record.get("quality", {}).get("psnr_db", 0)
        bench.check(abs(said - right) < 0.05, f"truth of {kind} {more}: {said:.2f} dB said, {right:.2f} dB")

bench.finish()
