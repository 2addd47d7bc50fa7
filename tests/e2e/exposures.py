"""Several blurs of one picture with different exposures."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(0)
SIZE, REACH = 100, 5
y, x = np.mgrid[0:SIZE + 2 * REACH, 0:SIZE + 2 * REACH]
scene = 0.45 + 0.2 * np.sin(x / 9) * np.cos(y / 6) + 0.25 * (np.hypot(y - 50, x - 40) < 22) - 0.2 * (np.abs(y - x - 20) < 6)
truth = scene[REACH:-REACH, REACH:-REACH]
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
kernels = [np.exp(-(u * u + v * v) / 4.5), np.exp(-u * u / 8 - v * v), np.exp(-((u - 1) ** 2) - v * v / 8)]
kernels = [k / k.sum() for k in kernels]
for i, k in enumerate(kernels):
    np.save(bench.path(f"k{i}.npy"), k)
side = range(2 * REACH + 1)
blurs = [sum(k[i, j] * scene[2 * REACH - i:2 * REACH - i + SIZE, 2 * REACH - j:2 * REACH - j + SIZE] for i in side for j in side) for k in kernels]
noise = 0.005 * random.normal(size=(3, SIZE, SIZE))
plain = {"operator": "blur", "kernels": ["k0.npy", "k1.npy", "k2.npy"], "measurement": "y.npy"}


def solve(exposures, entries=plain, scale=1, kind="f4"):
    """The record's part, the PSNR, what was said, and the result."""
    stack = np.concatenate([e * b + n for e, b, n in zip(exposures, blurs, noise)]) * scale
    np.save(bench.path("y.npy"), (np.rint(stack) if kind != "f4" else stack).astype(kind))
    bench.path("p.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"))
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, 0, "", None
    image = np.load(bench.path("out.npy"))
    return json.loads(bench.path("r.json").read_text())["reconstruct"], -10 * np.log10(np.mean((image / scale - truth) ** 2)), result.err, image


own, right, said, equal = solve((1, 1, 1))
bench.check(own and "gains" not in own and "exposure" not in said, f"equal exposures: {right:.2f} dB, {said!r}")
_, _, _, same = solve((1, 1, 1), {**plain, "gains": [1, 1, 1]})
bench.check(same is not None and np.array_equal(same, equal), "and nothing is changed")
for exposures in ((1, 0.95, 1), (1, 0.9, 1.1), (1, 0.7, 1.4)):
    own, found, said, _ = solve(exposures)
    bench.check(own and np.allclose(own.get("gains", 0), exposures, atol=0.004) and found > right - 0.5 and "different exposures" in said,
                f"exposures {exposures}: {own.get('gains')}, {found:.2f} of {right:.2f} dB, {said!r}")
own, found, _, _ = solve((1, 0.9, 1.1), {**plain, "gains": [1, 0.9, 1.1]})
bench.check(own and own.get("gains") == [1, 0.9, 1.1] and found > right - 0.5, f"given: {found:.2f} dB")
own, found, _, _ = solve((1, 0.9, 1.1), scale=3000, kind="u2")
bench.check(own and np.allclose(own.get("gains", 0), (1, 0.9, 1.1), atol=0.004), f"integers: {own.get('gains')}")
own, found, _, _ = solve((1, 0.9, 1.1), {**plain, "range": [300, 3300]}, scale=3000, kind="u2")
bench.check(own and np.allclose(own.get("gains", 0), (1, 0.9, 1.1), atol=0.004) and found > right - 1.5, f"with a range that begins above 0: {own.get('gains')}, {found:.2f} dB")
# White that noise lifts over the end of the range, more in one blur than in the others, looks darker there; and highlights that are cut off in one exposure.
white = np.minimum(scene + 0.5, 1)
bright = [sum(k[i, j] * white[2 * REACH - i:2 * REACH - i + SIZE, 2 * REACH - j:2 * REACH - j + SIZE] for i in side for j in side) for k in kernels]
for name, pictures, levels, exposures in (("noise on white", bright, (0.1, 0.02, 0.02), (1, 1, 1)), ("highlights", blurs, (0.01, 0.01, 0.01), (1, 2, 1))):
    stack = np.concatenate([e * b + level * random.normal(size=b.shape) for e, b, level in zip(exposures, pictures, levels)])
    np.save(bench.path("y.npy"), np.rint(255 * stack.clip(0, 1)).astype("u1"))
    bench.path("p.json").write_text(json.dumps(plain))
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--iterations", "1")
    found = record["reconstruct"].get("gains", [1, 1, 1]) if record else [0, 0, 0]
    bench.check(np.allclose(found, exposures, atol=0.01), f"{name}: {found} for {exposures}")
for wrong in ([1, 0.9], [1, 0, 1], [1, -1, 1], 1, ["a", 1, 1]):
    bench.path("p.json").write_text(json.dumps({**plain, "gains": wrong}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
    bench.check(result.status != 0 and "gains" in result.err and "3 positive numbers" in result.err, f"{wrong} is refused: {result}")
for value in (0, 0.3):
    np.save(bench.path("y.npy"), np.concatenate([blurs[0], blurs[1] * 0 + value, blurs[2]]).astype("f4"))
    bench.path("p.json").write_text(json.dumps(plain))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
    bench.check(result.status != 0 and "blur 1" in result.err and "lost" in result.err, f"a lost frame of {value} is refused: {result}")

bench.finish()
