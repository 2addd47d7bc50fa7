"""shared_noise.py PROGRAM: channels that share their noise (gray pictures stored as colours, film grain, sepia) are denoised one by
one: a network for colours was trained on independent noise, and would leave most of it."""
import json
import sys

from support import Bench, np, write_png

bench = Bench(sys.argv[1])
random = np.random.default_rng(5)
NOTE, WARNING = "each is denoised by itself", "leaves most"

y, x = np.mgrid[0:128, 0:160]
gray = np.clip(0.15 + 0.6 * x / 160 + 0.05 * np.sin(x / 3 + y / 5) * x / 160 + 0.1 * (np.hypot(y - 60, x - 90) < 30), 0, 1)
one = np.uint8(np.rint(255 * np.clip(gray + 0.08 * random.standard_normal(gray.shape), 0, 1)))


def db(a, b):
    return -10 * np.log10(np.mean((np.float64(a) - b) ** 2))


def denoise(array, *options):
    """The result, the record's entry, and what was said."""
    np.save(bench.path("in.npy"), array)
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), *options, "--json", bench.path("r.json"))
    record = json.loads(bench.path("r.json").read_text()) if run.status == 0 else {}
    bench.check(run.status == 0, f"runs: {run}")
    return np.load(bench.path("out.npy")), record["denoise"]["files"][0], run.err


# --- equal channels -------------------------------------------------------------------------------------------------

alone, _, _ = denoise(one)
three = np.stack([one] * 3, -1)
alpha = np.dstack([three, np.full_like(one, 255)])
for name, array, options in (("RGB", three, ()), ("a level that is given", three, ("--sigma", "0.08")), ("floats", np.float32(three / 255), ()),
                             ("16 bits", np.uint16(257) * three, ()), ("floats, level given", np.float32(three / 255), ("--sigma", "0.08"))):
    result, entry, said = denoise(array, *options)
    most = 1 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    bench.check(entry["channels"] == "one by one" and entry.get("equal_channels") and NOTE in said and said.count("\n") < 3, f"{name}: {said.strip()}")
    bench.check(np.array_equal(result[..., 0], result[..., 1]) and np.array_equal(result[..., 0], result[..., 2]), f"{name}: the channels stay equal")
    bench.check(db(result[..., 0] / most, gray) > db(alone / 255, gray) - 0.1, f"{name}: {db(result[..., 0] / most, gray):.2f} dB, and {db(alone / 255, gray):.2f} as one channel")

for name, array in (("rgb.png", three), ("rgba.png", alpha)):
    write_png(bench.path(name), array)
    plan = bench.record("plan", "denoise", bench.path(name), bench.path("out.png"))
    bench.check(plan and "gray" in plan["denoise"]["model"], f"{name}: the plan is that of the model for gray images")
    run = bench.run("denoise", bench.path(name), bench.path("out.png"), "--model", "drunet-color-small", "--json", "-")
    bench.check(WARNING in run.err and run.record["denoise"]["files"][0]["channels"] == "together", f"{name}: a model that is named stays, with a note: {run.err.strip()}")

# --- colours ----------------------------------------------------------------------------------------------------------

colours = np.stack([gray, 0.9 * gray, 1 - gray], -1)
grain = 0.08 * random.standard_normal(gray.shape)[..., None]
free = 0.08 * random.standard_normal(colours.shape)
for name, noisy, clean in (("grain", colours + grain, colours), ("sepia", (gray[..., None] + grain) * [1, 0.85, 0.65], gray[..., None] * [1, 0.85, 0.65])):
    result, entry, said = denoise(np.float32(noisy))
    together, _, warned = denoise(np.float32(noisy), "--model", "drunet-color-small")
    bench.check(entry["channels"] == "one by one" and entry["noise_correlation"] > 0.85 and "share their noise" in said, f"{name}: {entry['noise_correlation']:.2f} {said.strip()}")
    bench.check(db(result, clean) > db(together, clean) + 2, f"{name}: {db(result, clean):.2f} dB, and {db(together, clean):.2f} together")
    bench.check(WARNING in warned, f"{name}: a model that is named stays, with a note: {warned.strip()}")
for name, noisy, options in (("independent noise", colours + free, ()), ("independent noise that is added to gray", np.stack([gray] * 3, -1), ("--add-noise", "0.08")),
                             ("the same, estimated", np.stack([gray] * 3, -1), ("--add-noise", "0.08", "--sigma", "auto")), ("a given level", colours + free, ("--sigma", "0.08"))):
    _, entry, said = denoise(np.float32(noisy), *options)
    bench.check(entry["channels"] == "together" and entry.get("noise_correlation", 0) < 0.3 and NOTE not in said and WARNING not in said,
                f"{name}: together: {entry.get('noise_correlation')} {said.strip()}")

# --- channels that are no colours -------------------------------------------------------------------------------------

hills = 0.5 + 0.2 * np.sin(x / 23) * np.cos(y / 17) + 0.1 * np.sin(x / 9 + y / 31)
slopes = np.hypot(*np.gradient(hills))
aspects = np.arctan2(*np.gradient(hills)) / (2 * np.pi) + 0.5
terrain = np.stack([hills, slopes / slopes.max(), aspects], -1)
result, entry, said = denoise(np.float32(terrain + free), "--range", "0,1")
named, _, warned = denoise(np.float32(terrain + free), "--range", "0,1", "--model", "drunet-color-small")
bench.check(entry["channels"] == "one by one" and "not alike" in said, f"heights, slopes, aspects: {said.strip()}")
bench.check("mixes them" in warned, f"heights, slopes, aspects: a model that is named stays, with a note: {warned.strip()}")
for c in range(3):
    bench.check(db(result[..., c], terrain[..., c]) > db((terrain + free)[..., c], terrain[..., c]) + 1, f"channel {c} gains: {db(result[..., c], terrain[..., c]):.2f} dB")
for share, level in ((0.02, ()), (0.1, ()), (0.3, ("--sigma", "0.08")), (0.9, ("--sigma", "0.08"))):
    holes = np.float32(terrain + free)
    holes[random.random(gray.shape) < share] = np.nan
    result, entry, said = denoise(holes, *level)
    if share < 0.5:
        bench.check(entry["channels"] == "one by one" and "not alike" in said, f"with {share:.0%} holes: {said.strip()}")
    else:
        bench.check(entry["channels"] == "together" and "too many holes to tell" in said, f"with {share:.0%} holes: {said.strip()}")
    holes = np.float32(colours + free)
    holes[random.random(gray.shape) < share] = np.nan
    _, entry, said = denoise(holes, *level)
    bench.check(entry["channels"] == "together" and NOTE not in said, f"colours with {share:.0%} holes: {said.strip()}")
for name, image, kind in (("colours", colours, "together"), ("terrain", terrain, "one by one")):
    hot = 1000 + 3000 * (image + free)
    for c in range(3):  # in the first at places of their own, else in all at the same
        hot[5 + 7 * c * (kind == "together"):120:20, 9:150:14, c] = 60000
    _, entry, said = denoise(np.float32(hot))
    bench.check(entry["channels"] == kind and entry.get("defects", 0) > 100, f"{name} with hot pixels: {kind}: {said.strip()}")
write_png(bench.path("terrain.png"), np.uint8(np.rint(255 * np.clip(terrain + free, 0, 1))))
record = bench.record("denoise", bench.path("terrain.png"), bench.path("out.png"))
bench.check(record and record["denoise"]["files"][0]["channels"] == "together", "a file that names its colours is taken at its word")
_, entry, said = denoise(np.float32(0.5 + 0.08 * random.standard_normal((128, 160, 3))), "--range", "0,1")
bench.check(entry["channels"] == "together", f"noise alone has no structures to compare: {said.strip()}")

# --- a volume has one model, a folder one for each file -----------------------------------------------------------------

for name, noise, kind in (("grain", grain, "one by one"), ("independent", free, "together")):
    np.save(bench.path("volume.npy"), np.float32(np.stack([colours + np.roll(noise, z, 0) for z in range(3)])))
    plan = bench.record("plan", "denoise", bench.path("volume.npy"), bench.path("out.npy"), "--axes", "DHWC")
    bench.check(plan and plan["denoise"]["files"][0]["channels"] == kind, f"volume, {name}: {kind}")

write_png(bench.path("equal.png"), three)
weights = [bench.record("plan", "denoise", bench.path("equal.png"), bench.path("out.png"), *more)["plan"]["peak_bytes"]["weights"] for more in ((), ("--model", "drunet-gray-small"))]
bench.check(weights[0] == weights[1], f"a model that is not used takes no memory: {weights}")

bench.path("folder").mkdir()
write_png(bench.path("folder/a.png"), three)
write_png(bench.path("folder/b.png"), np.uint8(np.rint(255 * np.clip(colours + free, 0, 1))))
record = bench.record("denoise", bench.path("folder"), bench.path("results"))
bench.check(record and [file["channels"] for file in record["denoise"]["files"]] == ["one by one", "together"], "each file of a folder has its model")

bench.finish()
