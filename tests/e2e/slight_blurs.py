"""Slight blurs with little noise: the result must not have the network's own error, but fit the data."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
HEIGHT, WIDTH, REACH = 96, 120, 3
random = np.random.default_rng(7)


def picture():
    """Stripes of many widths and directions, and a texture: what a network takes for noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    stripes = sum(np.sin(2 * np.pi * (x * np.cos(a) + y * np.sin(a)) / p + a) for a, p in ((0.3, 5.1), (1.2, 7.3), (2.2, 4.3), (2.9, 11.0)))
    texture = random.normal(size=(HEIGHT, WIDTH))
    return np.clip(0.5 + 0.05 * stripes + 0.012 * texture + 0.2 * (x > 60), 0, 1)


def gaussian(sigma):
    at = np.arange(-REACH, REACH + 1)
    one = np.exp(-0.5 * (at / sigma) ** 2)
    return np.outer(one, one) / one.sum() ** 2


def blurred(image, kernel, circular):
    sides = (HEIGHT, WIDTH) if circular else (HEIGHT - 2 * REACH, WIDTH - 2 * REACH)
    wide = np.pad(image, REACH, mode="wrap") if circular else image
    return sum(kernel[i, j] * wide[i:i + sides[0], j:j + sides[1]] for i in range(2 * REACH + 1) for j in range(2 * REACH + 1))


def psnr(image, truth):
    return -10 * np.log10(np.mean((image - truth) ** 2))


def solve(entries, *args):
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, np.zeros((HEIGHT, WIDTH))
    return json.loads(bench.path("record.json").read_text())["reconstruct"], np.load(bench.path("out.npy")).astype(float)


truth = picture()
for sigma, noise, boundary, least in ((0.35, 0.002, "unknown", 1), (0.5, 0.002, "unknown", 8), (0.5, 0.0, "unknown", 10), (0.5, 0.002, "circular", 8)):
    circular = boundary == "circular"
    kernel = gaussian(sigma)
    y = blurred(truth, kernel, circular)
    y += random.normal(0, noise, y.shape)
    right = truth if circular else truth[REACH:-REACH, REACH:-REACH]
    np.save(bench.path("k.npy"), kernel)
    np.save(bench.path("y.npy"), np.ascontiguousarray(y.astype(np.float32)))
    own, image = solve({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", "boundary": boundary, "range": [0, 1], "noise": noise})
    found, before = psnr(image, right), psnr(y, right)
    bench.check(found > before + least and own.get("settled", 0) > 0.002, f"Gaussian of {sigma}, noise {noise}, {boundary}: {found:.2f} dB from {before:.2f} dB, settled {own.get('settled')}")

# The memory of the estimate of noise is planned: without it, these are fewer bytes.
words, held = [bench.path("out.npy"), "--problem", bench.path("problem.json"), "--iterations", 1], []
for entries in ({"noise": 0.01}, {}):
    bench.path("problem.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", "range": [0, 1], **entries}))
    record = bench.record("reconstruct", *words)
    if record:
        planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
        bench.check(planned == counted, f"{entries}: planned {planned} = counted {counted}")
        held.append(counted["io"])
bench.check(len(held) == 2 and held[1] > held[0], f"an estimate of the noise takes memory of the host: {held}")

# Where noise explains what the network removed, its picture remains.
smooth = 0.5 + 0.3 * np.sin(np.mgrid[:HEIGHT, :WIDTH][1] / 15.0)
y = blurred(smooth, gaussian(0.7), False)
y += random.normal(0, 0.03, y.shape)
np.save(bench.path("k.npy"), gaussian(0.7))
np.save(bench.path("y.npy"), y.astype(np.float32))
for more in ({}, {"noise": 0.03}):
    own, image = solve({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", "range": [0, 1], **more})
    found = psnr(image, smooth[REACH:-REACH, REACH:-REACH])
    bench.check("settled" not in own and found > 38, f"noise of 0.03 {more}: {found:.2f} dB, settled {own.get('settled')}")

bench.finish()
