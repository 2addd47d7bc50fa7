"""Scans as they are: noise that nobody measured, detector pixels that see nothing, small dense things, and matter that the
volume or the detector does not hold."""
import json
import sys

from support import Bench, dncnn, np, write_safetensors

bench = Bench(sys.argv[1])
SIZE, VIEWS = 96, 90
ANGLES = np.arange(VIEWS) * 2.0
DISKS = [(1.0, 9.6, -19.2, 12.5), (0.4, 0, 0, 38.4), (0.3, -21.1, 9.6, 9.6), (-0.2, 14, 16, 5)]  # value, x, y, radius


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def sinogram(disks=DISKS):
    """Line integrals, averaged over a column."""
    at = (np.arange(SIZE * 4) + 0.5) / 4 - SIZE / 2
    turn = np.deg2rad(ANGLES)[:, None]
    total = sum(value * 2 * np.sqrt(np.maximum(r ** 2 - (at[None] - x * np.cos(turn) + y * np.sin(turn)) ** 2, 0)) for value, x, y, r in disks)
    return total.reshape(VIEWS, SIZE, 4).mean(2)


def image(disks=DISKS):
    at = (np.arange(SIZE * 4) + 0.5) / 4 - SIZE / 2
    total = sum(value * ((at[None] - x) ** 2 + (at[:, None] - y) ** 2 <= r ** 2) for value, x, y, r in disks)
    return total.reshape(SIZE, 4, SIZE, 4).mean((1, 3))


def solve(entries, *args):
    """The record and the result's PSNR, and the notes on standard error; a slow machine also shows progress there."""
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return None, 0, ""
    record = json.loads(bench.path("record.json").read_text())
    return record["reconstruct"], record.get("quality", {}).get("psnr_db", 0), "".join(line + "\n" for line in result.err.splitlines() if line.startswith("tessera: "))


clean, truth = sinogram(), image()
random = np.random.default_rng(3)
plain = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": VIEWS}, "measurement": "y.npy", "truth": save("truth.npy", truth.astype(np.float32))}

# --- noise that is not given ----------------------------------------------------------------------------------------

save("y.npy", clean.astype(np.float32))
own, right, _ = solve(plain)
if own:
    bench.check(own["noise_from"] == "default" and abs(own["noise"] / own["range"][1] - 0.01) < 1e-6 and own.get("noise_estimate", 9) < own["noise"],
                f"without noise the default remains: {own['noise']:.4f}, estimated {own.get('noise_estimate', 9):.4f}")
for level in (0.25, 0.9):
    save("y.npy", (clean + random.normal(0, level, clean.shape)).astype(np.float32))
    _, given, _ = solve({**plain, "noise": level})
    own, found, said = solve(plain, "--verbose")
    if own:
        bench.check(own["noise_from"] == "estimate" and 0.85 * level < own["noise"] < 1.25 * level, f"noise {level} is estimated: {own['noise']:.3f}")
        bench.check("estimated" in said, f"and reported: {said!r}")
        bench.check(found > own["baseline_psnr_db"] + 2 and found > given - 1,
                    f"{own['baseline']} {own['baseline_psnr_db']:.2f} dB, estimated {found:.2f} dB, given {given:.2f} dB")
counts = random.poisson(5000 * np.exp(-0.1 * clean)).astype(np.uint16)
photons = {**plain, "measurement": save("counts.npy", counts), "flat": 5000, "truth": save("small.npy", (0.1 * truth).astype(np.float32))}
own, found, _ = solve(photons)
if own:
    bench.check(own["noise_from"] == "estimate" and found > own["baseline_psnr_db"] + 2,
                f"5000 photons: {own['baseline']} {own['baseline_psnr_db']:.2f} dB, noise {own['noise']:.3f}, {found:.2f} dB")
plan = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"))
bench.check(plan and plan["reconstruct"]["noise_from"] == "estimate" and "noise" not in plan["reconstruct"], "a plan says that it will be estimated")
own, _, _ = solve({**photons, "noise": 0.1}, "--iterations", 1)
bench.check(own and own["noise_from"] == "given" and abs(own["noise"] - 0.1) < 1e-9 and "noise_estimate" not in own, "a given noise is used")

# --- memory for that ------------------------------------------------------------------------------------------------

# The network and the image are so small that the estimate takes most.
tiny = write_safetensors(bench.path("tiny.safetensors"), dncnn(1, 3, 8))
many = random.normal(0, 0.1, (1000, 64)).astype(np.float32) + 8 * np.sqrt(np.maximum(1 - np.linspace(-2, 2, 64) ** 2, 0)).astype(np.float32)
turning = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": len(many)}, "measurement": save("many.npy", many), "range": [0, 1]}
words = [bench.path("out.npy"), "--problem", bench.path("problem.json"), "--model", tiny, "--iterations", 1]
totals = []
for entries in ({"noise": 0.1}, {}):
    bench.path("problem.json").write_text(json.dumps({**turning, **entries}))
    plan, done = bench.record("plan", "reconstruct", *words), bench.record("reconstruct", *words)
    if plan and done:
        planned, counted = done["plan"]["peak_bytes"], done["measured"]["peak_bytes"]
        bench.check(plan["plan"]["peak_bytes"] == planned == counted, f"{entries}: planned {planned} = counted {counted}")
        totals.append(counted["total"])
spectrum = 16 * (1024 * 33 + 64) + many.nbytes  # complex numbers of all frequencies and of one view, and the views
if len(totals) == 2:
    bench.check(totals[1] >= totals[0] + spectrum // 2, f"the spectrum of {spectrum} bytes is among them: {totals}")
result = bench.run("reconstruct", *words, "--memory", totals[-1] - 4096 if totals else 0)
bench.check_refused(result, 1, "--memory", "too little")

# --- thin wires that leave no place without an edge -------------------------------------------------------------------

def wire(angles, x, y):
    """Line integrals of a square of 2 pixels, averaged over a column: the integral of a trapezoid."""
    turn = np.deg2rad(angles)[:, None]
    sides = np.sort(np.abs(2 * np.concatenate([np.cos(turn), np.sin(turn)], 1)) + 1e-9, 1)
    flat, end = ((sides[:, 1:] + sign * sides[:, :1]) / 2 for sign in (-1, 1))

    def below(at):
        far = np.minimum(np.abs(at), end)
        return np.sign(at) * (far - np.maximum(far - flat, 0) ** 2 / (2 * (end - flat))) * 4 / sides[:, 1:]

    at = np.arange(SIZE)[None] - (SIZE - 1) / 2 - x * np.cos(turn) + y * np.sin(turn)
    return below(at + 0.5) - below(at - 0.5)


places = np.random.default_rng(7)
corners, heights = places.integers(SIZE // 4, 3 * SIZE // 4, (9, 2)), places.uniform(0.3, 1, 9)
scene = image([(0.08, 0, 0, 36.5)])
for (row, column), height in zip(corners, heights):
    scene[row:row + 2, column:column + 2] += height
for views, part, sure in ((45, 0.003, True), (90, 0.01, True), (12, 0.003, False)):
    angles = np.arange(views) * 180 / views
    across = (np.arange(SIZE * 4) + 0.5) / 4 - SIZE / 2
    thin = 0.16 * np.sqrt(np.maximum(36.5 ** 2 - across ** 2, 0)).reshape(1, SIZE, 4).mean(2)
    thin = thin + sum(height * wire(angles, column + 1 - SIZE / 2, row + 1 - SIZE / 2) for (row, column), height in zip(corners, heights))
    level = part * thin.max()
    save("y.npy", (thin + places.normal(0, level, thin.shape)).astype(np.float32))
    wires = {**plain, "angles": {"from": 0, "to": 180, "count": views}, "truth": save("wires.npy", scene.astype(np.float32)), "range": [0, float(scene.max())]}
    _, given, _ = solve({**wires, "noise": level})
    own, found, said = solve(wires)
    if own and sure:
        bench.check(own["noise_from"] == "estimate" and 0.75 * level < own["noise"] < 1.25 * level and own.get("noise_confidence") == "sure" and not said,
                    f"wires, {views} views, noise {level:.3f}: {own['noise']:.3f}, {own.get('noise_confidence')}, {said!r}")
        bench.check(found > given - 0.5, f"which gives {found:.2f} of {given:.2f} dB")
    elif own:
        bench.check(own.get("noise_confidence") == "rough" and "roughly" in said and '"noise"' in said, f"{views} views are too few: {own['noise']:.3f}, {said!r}")

# --- a given range of another unit ------------------------------------------------------------------------------------

save("y.npy", clean.astype(np.float32))
high = float(truth.max())
for given, words in (([0, 255], "small part"), ([0, 20], "small part"), ([0, 0.3 * high], "cut off"), ([0, high], ""), ([0, 3 * high], "")):
    own, _, said = solve({**plain, "range": given}, "--iterations", 4)
    bench.check(own is not None and (words in said and "leave it out" in said if words else "range" not in said), f"range {given} of an image up to {high:.2f}: {said!r}")

# --- detector pixels that see nothing -------------------------------------------------------------------------------

light = random.poisson(20000 * np.exp(-0.05 * clean)).astype(np.uint16)
whole = {**plain, "measurement": save("light.npy", light), "flat": 20000, "truth": save("faint.npy", (0.05 * truth).astype(np.float32))}
own, right, said = solve(whole)
bench.check(own and "dead_pixels" not in own and "dead" not in said, f"no dead pixel: {right:.2f} dB")
field = np.full((1, SIZE), 20000, np.float32)
field[0, 45] = 0
for what, columns, value, change in (("one that counts nothing", [45], 0, {}), ("at the edge", [0, SIZE - 1], 0, {}), ("three together", [50, 51, 52], 0, {}),
                                     ("one that is always the same", [45], 9000, {}), ("one that is always full", [45], 65535, {}),
                                     ("one that is dead in the flat field, too", [45], 0, {"flat": save("flat.npy", field)}),
                                     ("with the search of the axis", [45], 0, {"centre": "auto"})):
    broken = light.copy()
    broken[:, columns] = value
    own, found, said = solve({**whole, "measurement": save("broken.npy", broken), **change})
    bench.check(own and own.get("dead_pixels") == len(columns) and own["starved"] == 0 and f"column {columns[0]}" in said and found > right - (1 if len(columns) < 3 else 6),
                f"{what}: {found:.2f} of {right:.2f} dB, {said!r}")
_, right, _ = solve({**plain, "measurement": save("clean.npy", clean.astype(np.float32))}, "--iterations", 2)
for value, dead in ((0, 45), (90, 45), (0, 1)):  # simulated, so that pixels in the air do not change either
    broken = clean.astype(np.float32)
    broken[:, dead] = value
    own, found, said = solve({**plain, "measurement": save("broken.npy", broken)}, "--iterations", 2)
    bench.check(own and own.get("dead_pixels", 0) == (dead == 45) and found > right - 1, f"without noise, {value} in column {dead}: {found:.2f} of {right:.2f} dB")
own, _, said = solve({**plain, "measurement": save("still.npy", np.repeat(sinogram([(1, 0, 0, 30)])[:1], VIEWS, 0).astype(np.float32))}, "--iterations", 1)
bench.check(own and "dead_pixels" not in own, "views that are all alike have no dead pixels")

# --- a small dense object -------------------------------------------------------------------------------------------

bead = DISKS + [(40, 19.5, 5.5, 0.5)]
dense, away = image(bead), np.abs(image(bead) - truth) < 1e-9
seed = {**plain, "measurement": save("bead.npy", sinogram(bead).astype(np.float32)), "truth": save("dense.npy", dense.astype(np.float32))}
error = {}
for name, entries in (("none", {**plain, "measurement": "clean.npy"}), ("given", {**seed, "range": [0, float(dense.max())]}), ("found", seed)):
    own, _, _ = solve(entries)
    result = np.load(bench.path("out.npy"))
    error[name] = np.sqrt(np.mean((result - dense)[away] ** 2))
    print(f"{name}: range {own and own['range']}, largest value {result.max():.2f} of {dense.max():.2f}, error beside it {error[name]:.4f}")
bench.check(own and own["range"][1] > 0.9 * dense.max() and result.max() > 0.75 * dense.max() and error["found"] < 1.3 * error["given"],
            "a bead of a pixel is not cut off by the estimated range")

# --- values below 0 -------------------------------------------------------------------------------------------------

for radius, value, refused in ((16, -0.8, True), (12, -1.6, True), (12, -0.45, False)):
    holes = [(0.4, 0, 0, 38.4), (value, 6, -8, radius)]
    for level in (0, 0.25):
        save("y.npy", (sinogram(holes) + random.normal(0, level, clean.shape)).astype(np.float32))
        bench.path("problem.json").write_text(json.dumps({**plain, "truth": save("holes.npy", image(holes).astype(np.float32))}))
        result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--iterations", 1, "--quiet")
        what = f"a hole of {0.4 + value:.2f} in a disk of 0.4, radius {radius}, noise {level}: {result}"
        bench.check((result.status == 1 and "not negative" in result.err) if refused else result.status == 0, what)
        if refused:
            solve({**plain, "truth": "holes.npy", "range": [0.4 + value, 0.4]}, "--iterations", 1)

# --- matter outside of the volume, or of the detector --------------------------------------------------------------

BALLS = [(0.4, 0, 0, 0, 9), (0.5, 4, -3, 2, 2.5), (0.6, -5, 2, -4, 2), (-0.3, 1, 5, 3, 2)]  # value, x, y, z, radius
SIDES, ROWS, COLUMNS = (20, 24, 28), 34, 44


def balls():
    z, y, x = np.meshgrid(*[(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in SIDES], indexing="ij")
    total = sum(value * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 <= r * r) for value, a, b, c, r in BALLS)
    return total.reshape(SIDES[0], 3, SIDES[1], 3, SIDES[2], 3).mean((1, 3, 5))


def view(vectors, parallel=False):
    source, middle, u, v = vectors.reshape(4, 3)
    right, down = [(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in (COLUMNS, ROWS)]
    at = middle + right[None, :, None] * u + down[:, None, None] * v
    along = np.broadcast_to(source, at.shape) if parallel else at - source
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    total = 0
    for value, *ball, r in BALLS:
        to = np.array(ball) - (at if parallel else source)
        near = (to * along).sum(-1)
        total = total + value * 2 * np.sqrt(np.maximum(r * r - ((to * to).sum(-1) - near ** 2), 0))
    return total.reshape(ROWS, 3, COLUMNS, 3).mean((1, 3))


turns = 2 * np.pi * np.arange(48) / 48
zero = 0 * turns
solid = balls()
part = solid[4:16, 5:19, 7:21]
for operator, distance, pitch in (("cone", 60, 1.3), ("parallel3d", 1, 1.0)):
    vectors = np.stack([distance * np.sin(turns), -distance * np.cos(turns), zero, -30 * np.sin(turns), 30 * np.cos(turns), zero,
                        pitch * np.cos(turns), pitch * np.sin(turns), zero, zero, zero, pitch + zero], 1)
    views = np.array([view(one, operator == "parallel3d") for one in vectors])
    save("views.npy", (views + random.normal(0, 0.1, views.shape)).astype(np.float32))
    cube = {"operator": operator, "vectors": save("vectors.npy", vectors), "volume": list(SIDES), "measurement": "views.npy"}
    own, _, said = solve(cube, "--iterations", 4)
    bench.check(own and not {"outside_share", "enlarged_to", "edge_share", "dead_pixels"} & set(own) and not said, f"{operator}: the volume holds all: {said!r}")
    all_of_it = np.load(bench.path("out.npy"))[4:16, 5:19, 7:21]
    own, found, said = solve({**cube, "volume": list(part.shape), "truth": save("part.npy", part.astype(np.float32))}, "--iterations", 4,
                             "--side-by-side", bench.path("side.npy"))
    result = np.load(bench.path("out.npy"))
    errors = [np.sqrt(np.mean((array - part) ** 2)) for array in (result, all_of_it)]
    bench.check(own and own["outside_share"] > 0.05 and own["enlarged_to"] > list(part.shape) and '"volume": [' in said, f"{operator}, a part: {said!r}")
    bench.check(result.shape == part.shape and errors[0] < 1.15 * errors[1], f"is right: error {errors[0]:.4f}, of the same part of the whole volume {errors[1]:.4f}")
    psnr = 10 * np.log10(part.max() ** 2 / np.mean((result - part) ** 2))
    bench.check(abs(found - psnr) < 0.1, f"and so is its PSNR: {found:.2f}, {psnr:.2f}")
    first = np.load(bench.path("side.npy"))[:, :14]
    bench.check(np.sqrt(np.mean((first - part[6]) ** 2)) < 0.15, "the first picture beside it is the same slice")
    plan = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"))
    bench.check(plan and plan["reconstruct"]["enlarged_to"] == own["enlarged_to"], "the plan says the same")
    for shape in ((1, *part.shape[1:]), part.shape[1:]):
        one = {**cube, "volume": [1, *part.shape[1:]], "truth": save("slice.npy", part[6].astype(np.float32).reshape(shape))}
        own, found, said = solve(one, "--iterations", 1)
        psnr = 10 * np.log10(part[6].max() ** 2 / np.mean((np.load(bench.path("out.npy")) - part[6]) ** 2))
        bench.check(own and abs(found - psnr) < 0.1, f"a volume of one slice with a truth of {shape}: PSNR {found:.2f}, {psnr:.2f}")
    own, _, said = solve({**cube, "volume": [6, 6, 6]}, "--iterations", 1)
    bench.check(own and "enlarged_to" not in own and own["volume_needed"][2] >= 18 and '"volume": [' in said, f"one that would grow too much is named: {said!r}")
    for what, cut in (("wider", views[:, :, 14:30]), ("higher", views[:, 12:22])):
        own, _, said = solve({**cube, "measurement": save("cut.npy", cut.astype(np.float32))}, "--iterations", 1)
        bench.check(own and own["edge_share"] > 0.05 and f"{what} than the detector" in said, f"an object that is {what}: {said!r}")
    broken = np.load(bench.path("views.npy"))
    broken[:, 15, 20], broken[:, 7, :], broken[:, :, 31] = 3, 9, 0
    own, _, said = solve({**cube, "measurement": save("broken.npy", broken)}, "--iterations", 4)
    result = np.load(bench.path("out.npy"))[4:16, 5:19, 7:21]
    error = np.sqrt(np.mean((result - part) ** 2))
    bench.check(own and own["dead_pixels"] > COLUMNS and error < 1.5 * errors[1], f"dead pixels, {own and own['dead_pixels']}: error {error:.4f} of {errors[1]:.4f}")
    own, _, said = solve({**cube, "measurement": save("still.npy", views.astype(np.float32))}, "--iterations", 1)
    bench.check(own and "dead_pixels" not in own, f"without noise, rays through what is symmetric are not dead: {said!r}")

bench.finish()
