"""Blurred pages, QR codes and barcodes with an even margin: the margin is no frame that was set after the blur, the bars are no stripes of a camera, and edges are no noise."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(7)
SIDE, REACH = 112, 4
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
disc = np.clip(3.5 - np.hypot(v, u), 0, 1)
gauss = np.exp(-0.5 * (u * u + v * v) / 1.3**2)


def blurred(sharp, kernel):
    side, k, size = range(2 * REACH + 1), kernel / kernel.sum(), SIDE - 2 * REACH
    return np.rint(sum(k[i, j] * sharp[2 * REACH - i:2 * REACH - i + size, 2 * REACH - j:2 * REACH - j + size] for i in side for j in side)).astype(np.uint8)


def solve(sharp, kernel, *args, **entries):
    """The record's part, the PSNR of the result, and what was said."""
    np.save(bench.path("y.npy"), blurred(sharp, kernel))
    np.save(bench.path("k.npy"), kernel)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", **entries}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, 0, ""
    error = np.load(bench.path("out.npy")).astype(float) - sharp[REACH:-REACH, REACH:-REACH]
    return json.loads(bench.path("r.json").read_text())["reconstruct"], 10 * np.log10(255**2 / np.mean(error**2)), result.err


code = np.zeros((SIDE, SIDE))
code[16:96, 16:96] = np.kron(random.random((16, 16)) < 0.5, np.ones((5, 5)))
bars = np.zeros((SIDE, SIDE))
at = 16
while at < 94:
    width = 2 * random.integers(1, 4)
    bars[16:84, at:at + width] = 1
    at += width + 2 * random.integers(1, 4)
page = np.zeros((SIDE, SIDE))
for top in range(12, 90, 20):
    for left in range(12, 92, 13):
        page[top:top + 14, left:left + 10] = np.kron(random.random((7, 5)) < 0.5, np.ones((2, 2)))

for name, ink in (("code", code), ("bars", bars), ("page", page)):
    for label, kernel in (("disc", disc), ("Gaussian", gauss)):
        for low, high in ((0, 255), (10, 240)):
            own, _, said = solve(high - (high - low) * ink, kernel, "--iterations", "1")
            bench.check(own.get("noise", 9) < 1.5 and "frame" not in own.get("masked", {}) and "frame" not in said and "stripes" not in said,
                        f"{name}, {label}, {low} to {high}: noise {own.get('noise')}: {said}")
own, after, said = solve(255 - 255 * code, disc)
_, given, _ = solve(255 - 255 * code, disc, noise=1)
bench.check(after > given - 3, f"code: {after:.2f} dB, {given:.2f} with the right noise: {said}")

bench.finish()
