"""shared_blurs.py PROGRAM: blurs in colour whose channels share their noise (gray stored as RGB, film grain, 4:2:0 JPEG files) are restored one by
one: a network for colours takes such noise for picture, and ends below the input."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(3)
NOTE, WARNING = "each is denoised by itself", "leaves most"
HEIGHT, WIDTH, REACH = 104, 120, 4
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
disc = np.clip(3.5 - np.hypot(v, u), 0, 1)
slight = np.exp(-(u * u + v * v) / (2 * 0.6 ** 2))
y, x = np.mgrid[:HEIGHT + 2 * REACH, :WIDTH + 2 * REACH]
gray = 90 + 40 * np.sin(x / 9) * np.cos(y / 6) + 50 * (np.hypot(y - 50, x - 40) < 22) - 40 * (np.abs(y - x - 20) < 6) + 40 * ((x // 6 + y // 8) % 2) * (x > 80)
colours = np.stack([gray, 0.8 * gray + 20, 200 - 0.7 * gray], -1)
one, free = random.normal(0, 1, (HEIGHT, WIDTH, 1)), random.normal(0, 1, (HEIGHT, WIDTH, 3))


def inner(image):
    return image[REACH:-REACH, REACH:-REACH]


def blurred(sharp, kernel):
    side = range(2 * REACH + 1)
    kernel = kernel / kernel.sum()
    return sum(kernel[i, j] * sharp[2 * REACH - i:2 * REACH - i + HEIGHT, 2 * REACH - j:2 * REACH - j + WIDTH] for i in side for j in side)


def bytes_of(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def psnr(image, sharp, unit=1):
    return 10 * np.log10(255 ** 2 / np.mean((image / unit - inner(sharp)) ** 2))


def problem(values, kernel, **entries):
    np.save(bench.path("y.npy"), values)
    np.save(bench.path("k.npy"), kernel)
    blurs = {"kernels": ["k.npy"] * (len(values) // HEIGHT)} if len(values) > HEIGHT else {"kernel": "k.npy"}
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "measurement": "y.npy", **blurs, **entries}))


def solve(values, kernel, *args, **entries):
    """The result, the record's part, and what was said."""
    problem(values, kernel, **entries)
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"), *args)
    bench.check(result.status == 0, f"runs: {result}")
    return np.load(bench.path("out.npy")), json.loads(bench.path("r.json").read_text())["reconstruct"], result.err


# --- noise that is shared: also if its level is given, and in several blurs ------------------------------------------------

soft = blurred(colours, disc)
grain = bytes_of(soft + 1.5 * one)
before = psnr(grain, colours)
several = np.concatenate([grain, bytes_of(soft + 1.5 * one[::-1])])
half = np.sqrt(0.5)
for name, values, args, entries in (("grain", grain, (), {}), ("grain, noise given", grain, (), {"noise": 1.5}), ("floats", np.float32(grain) / 255, (), {}), ("two blurs", several, (), {}),
                                    ("grain, half of it shared", bytes_of(soft + 1.5 * half * (one + free)), (), {})):
    result, own, said = solve(values, disc, *args, **entries)
    after = psnr(result, colours, 1 / 255 if values.dtype.kind == "f" else 1)
    bench.check(own.get("channels") == "one by one" and own.get("noise_correlation", 0) > (0.3 if "half" in name else 0.85) and "share their noise" in said and NOTE in said, f"{name}: {own.get('noise_correlation')} {said.strip()}")
    bench.check(after > before + 2, f"{name}: {before:.2f} to {after:.2f} dB")

problem(grain, disc)
plan = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
bench.check(plan and "gray" in plan["reconstruct"]["model"] and plan["reconstruct"].get("channels") == "one by one", "the plan is that of the model for gray images")
_, own, said = solve(grain, disc, "--model", "drunet-color-small", "--iterations", "1")
bench.check(own.get("channels") == "together" and WARNING in said and NOTE not in said, f"a model that is named stays, with a note: {said.strip()}")
_, own, said = solve(grain, disc, "--model", "drunet-gray-small", "--iterations", "1")
bench.check(own.get("channels") == "one by one" and WARNING not in said and NOTE not in said, f"nothing is said of the right model: {said.strip()}")

# --- gray stored as colours -----------------------------------------------------------------------------------------------

single = bytes_of(blurred(gray, disc) + 1.5 * one[..., 0])
alone, _, _ = solve(single, disc)
result, own, said = solve(np.stack([single] * 3, -1), disc)
bench.check(own.get("equal_channels") and own.get("channels") == "one by one" and "channels are equal" in said, f"equal channels: {said.strip()}")
bench.check(all(np.abs(np.float64(result[..., c]) - alone).max() < 0.5 for c in range(3)), "each of the equal channels ends as one channel does")

# --- what the network for colours suits -----------------------------------------------------------------------------------

fine = colours + random.normal(0, 6, colours.shape[:2])[..., None]  # texture, which colours share, but no noise
mosaic = soft + 1.5 * free
for c, (row, column) in enumerate(((0, 0), (0, 1), (1, 1))):  # the mean of neighbours where a sensor has no pixel of that colour
    seen = np.zeros(mosaic.shape[:2])
    seen[row::2, column::2] = 1
    weights = [np.roll(np.roll(seen, i, 0), j, 1) * (2 - abs(i)) * (2 - abs(j)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    means = [np.roll(np.roll(mosaic[..., c], i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    mosaic[..., c] = np.where(seen > 0, mosaic[..., c], sum(w * m for w, m in zip(weights, means)) / sum(weights))
for name, values, kernel in (("independent noise", soft + 1.5 * free, disc), ("no noise", soft, disc), ("a quarter of it shared", soft + 1.5 * (np.sqrt(0.75) * free + 0.5 * one), disc),
                             ("demosaiced", mosaic, disc), ("texture in a slight blur", blurred(fine, slight), slight)):
    problem(bytes_of(values), kernel)
    plan = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
    bench.check(plan and plan["reconstruct"].get("channels") == "together" and "color" in plan["reconstruct"]["model"], f"{name}: together: {plan and plan['reconstruct'].get('noise_correlation')}")

bench.finish()
