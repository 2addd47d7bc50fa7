"""Measured data: problem files give the results of the synthetic problems, in any unit; any error in one is reported in
one line, before the work, and no existing file is lost."""
import json
import math
import sys

from support import Bench, leftovers, np, picture

bench = Bench(sys.argv[1])


def save(name, array):
    np.save(bench.path(name), array)
    return name


def problem_file(entries, name="problem.json"):
    bench.path(name).write_text(entries if isinstance(entries, str) else json.dumps(entries))
    return bench.path(name)


def run(out, *args):
    record = bench.record("reconstruct", bench.path(out), *args)
    return record, np.load(bench.path(out)) if record else None


def changed(array, where, value):
    array = np.array(array)
    array[where] = value
    return array


# --- round trips: measurements are saved by the synthetic problem ----------------------------------------------------

few = ["--iterations", "2"]
size, views = 32, 20
same, image = run("a.npy", "--problem", "tomo2d", "--size", size, "--angles", views, "--save-measurement", bench.path("sinogram.npy"), *few)
radon = {"operator": "radon", "angles": list(np.linspace(0, 180, views + 1)[:-1]), "measurement": "sinogram.npy", "noise": 0.01, "range": [0, 1]}
record, again = run("b.npy", "--problem", problem_file(radon), *few)
if record and same:
    bench.check("quality" not in record and "baseline_psnr_db" not in record["reconstruct"], "no truth, no PSNR")
    # The filter of the start is chosen by the truth, where there is one.
    bench.check(np.abs(image - again).mean() < 0.01, "a sinogram gives what the synthetic problem gives")

save("truth.npy", picture(size, 24))
same, image = run("a.npy", "--problem", "deblur", "--image", bench.path("truth.npy"), "--operators", 3, "--save-measurement", bench.path("y.npy"), *few)
blur = {"operator": "blur", "angles": [0, 90, 180], "sigma": [0.01 * size, 0.005 * size], "measurement": "y.npy", "truth": "truth.npy", "boundary": "circular", "noise": 0.1}
record, again = run("b.npy", "--problem", problem_file(blur), *few)
if record and same:
    bench.check(np.array_equal(image, again) and record["quality"] == same["quality"], "blurs: the same bits")

size = 24
same, image = run("a.npy", "--problem", "tomo3d", "--size", size, "--angles", views, "--save-measurement", bench.path("views.npy"), *few)
orbit = 2 * math.pi * np.arange(views) / views
s, c, zero, one = np.sin(orbit), np.cos(orbit), np.zeros(views), np.ones(views)
vectors = np.stack([2 * size * s, -2 * size * c, zero, -size * s, size * c, zero, 1.5 * c, 1.5 * s, zero, zero, zero, 1.5 * one], 1)
save("vectors.npy", vectors)
cone = {"operator": "cone", "vectors": "vectors.npy", "volume": [size] * 3, "measurement": "views.npy", "noise": 0.01, "range": [0, 1], "resample": False}
record, again = run("b.npy", "--problem", problem_file(cone), *few)
y = np.load(bench.path("views.npy"))
if record and same:
    bench.check(y.shape == (views, 27, 27) and y.dtype == np.float32, "views are saved as (views, rows, columns)")
    bench.check(np.array_equal(image, again), "views along vectors: the same bits")
    # Tenths of a millimetre and values up to 50: the same problem in other units.
    save("vectors01.npy", (vectors * 0.1).astype(np.float32))
    save("views01.npy", np.float64(y) * 0.1 * 50)
    save("volume50.npy", image * 50)
    units = {**cone, "vectors": "vectors01.npy", "measurement": "views01.npy", "spacing": 0.1, "range": [0, 50], "noise": 0.05, "truth": "volume50.npy"}
    record, again = run("b.npy", "--problem", problem_file(units), *few)
    if record:
        bench.check(np.abs(again / 50 - image).max() < 1e-3 and record["quality"]["psnr_db"] > 60, "in other units it is the same problem")
        bench.check(abs(record["reconstruct"]["noise"] - 0.05) < 1e-9, "the record tells the noise as the file does")

    # NumPy's own parallel views: sums of a volume along its axes.
    save("sums.npy", np.stack([image.sum(1)[:, ::-1], image.sum(2)]))
    sides = {"operator": "parallel3d", "vectors": "sides.npy", "volume": [size] * 3, "measurement": "sums.npy", "range": [-2, 2]}
    save("sides.npy", np.array([[0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1.0], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]]))
    record, again = run("b.npy", "--problem", problem_file(sides), "--init", "cg", "--step", "auto", "--relax", "1e-6", "--iterations", "1")
    if record:
        error = max(np.abs(again.sum(axis) - image.sum(axis)).mean() for axis in (1, 2)) / image.sum(2).mean()
        bench.check(error < 1e-3, f"parallel views are sums along their rays: {error:.4f}")
        bench.check(record["reconstruct"]["operator"] == "parallel3d", "the record names the operator as the file does")

# --- a relaxation is told in steps, also where conjugate gradients take none ------------------------------------------

for problem, values in (("tomo2d", ("1", "1e3", "1e9")), ("deblur", ("0.01", "1", "1e9"))):
    plain, *relaxed = [run("b.npy", "--problem", problem, "--size", 32, *few, *args) for args in ([], *(["--relax", value] for value in values))]
    if plain[0] and all(record for record, _ in relaxed):
        far = [np.abs(image - plain[1]).mean() for _, image in relaxed]
        bench.check(plain[0]["reconstruct"]["data_step"] != "gradient" and far[0] > far[1] + 1e-4 and far[1] > far[2] + 1e-4,
                    f"{problem}: the more --relax, the nearer to the denoiser's own result: {far[0]:.4f} {far[1]:.4f} {far[2]:.4f}")

# --- a step that is too long: told, halved, and the result is still good ---------------------------------------------

for name, entries in (("blurs", blur), ("a sinogram", radon), ("views", cone)):
    record, image = run("b.npy", "--problem", problem_file(entries), "--step", "1e6", *few)
    if record:
        bench.check(record["reconstruct"]["step_halvings"] > 5 and np.isfinite(image).all(), f"{name}: a step of 1e6 is halved")
bench.check("halved" in bench.run("reconstruct", bench.path("b.npy"), "--problem", problem_file(blur), "--step", "1e6", *few).out, "and people are told")

# --- the record and the summary tell what was done ------------------------------------------------------------------

for args, told, words in [
    (["--problem", "deblur", "--iterations", 1], {"data_step": "minimum", "inner": 0, "stopped": "iterations", "last_sigma": 0.1}, ["1 iteration,", "minimum"]),
    (["--problem", "deblur", "--inner", 0, *few], {"data_step": "gradient", "inner": 0, "step": 0.99 / 8, "last_sigma": 0.03}, ["2 iterations, step 0.12"]),
    (["--problem", "deblur", "--relax", 5, *few], {"data_step": "minimum", "inner": 0, "step": 0.99 / 8}, ["minimum", "relaxed in steps of 0.12"]),
    (["--problem", "tomo2d", "--inner", 1, *few], {"data_step": "conjugate gradients", "inner": 1}, ["up to 1 step of conjugate gradients"]),
    (["--problem", "tomo2d", "--inner", 3, "--step", 0.1, "--relax", 2, *few], {"inner": 3, "step": 0.1}, ["3 steps of", "relaxed in steps of 0.1"]),
    (["--problem", "tomo2d", "--tolerance", 10], {"inner": 6, "stopped": "tolerance", "last_sigma": 0.05}, ["1 iteration,", "stopped by --tolerance"]),
    (["--problem", "tomo2d", "--max-seconds", 1e-6], {"stopped": "seconds", "last_sigma": 0.05}, ["1 iteration,", "stopped by --max-seconds"]),
    (["--problem", "tomo2d", "--max-seconds", 1e-6, "--iterations", 1], {"stopped": "iterations"}, ["1 iteration,"]),
]:
    result = bench.run("reconstruct", bench.path("b.npy"), "--size", 24, *args, "--json", bench.path("told.json"))
    if bench.check(result.status == 0 and all(word in result.out for word in words), f"{' '.join(map(str, args))}: the summary says {words}: {result}"):
        own = json.loads(bench.path("told.json").read_text())["reconstruct"]
        bench.check(told.items() <= own.items(), f"and the record {told}: {({key: own.get(key) for key in told})}")
        steps = [each.get("step") for each in [own, *own["iterations"]]]
        bench.check(steps == [told.get("step")] * len(steps), f"and a step where one counts: {steps}")
        bench.check(own["last_sigma"] == own["iterations"][-1]["sigma"], "the last sigma is that of the last iteration")

# --- bad input: one line, status 1 (an option: 2), what was there is kept ---------------------------------------------

sinogram, kept = np.load(bench.path("sinogram.npy")), bench.path("kept.npy")
kept.write_text("kept")
across = vectors[2, 3:6] + 100 * vectors[2, 6:9]
plain = vectors.copy()
plain[:, :3] = vectors[:, 3:6] - vectors[:, :3]
cases = [
    (cone, {"measurement": save("c1.npy", changed(y, (3, 4, 5), np.nan))}, ["c1.npy", "NaN", "[3, 4, 5]"]),
    (cone, {"measurement": save("c2.npy", changed(y, (3, 4, 5), -np.inf))}, ["c2.npy", "infinite", "[3, 4, 5]"]),
    (cone, {"measurement": save("c3.npy", y[:10])}, ["c3.npy", "20 views", "(10, 27, 27)"]),
    (cone, {"measurement": save("c4.npy", y.reshape(-1, 27))}, ["c4.npy", "(views, rows, columns)"]),
    (cone, {"measurement": save("c5.npy", y[None])}, ["c5.npy", "4 dimension"]),
    (cone, {"measurement": save("c6.npy", y.astype(np.complex64))}, ["c6.npy", "float"]),
    (cone, {"measurement": "missing.npy"}, ["missing.npy"]),
    (cone, {"measurement": None}, ["measurement"]),
    (cone, {"vectors": "missing.npy"}, ["missing.npy"]),
    (cone, {"vectors": None}, ["vectors"]),
    (cone, {"vectors": save("v1.npy", vectors[:, :11])}, ["v1.npy", "11 columns", "12"]),
    (cone, {"vectors": save("v2.npy", vectors.astype(np.int32))}, ["v2.npy", "float64"]),
    (cone, {"vectors": save("v3.npy", changed(vectors, (2, 3), np.nan))}, ["v3.npy", "view 2", "finite"]),
    (cone, {"vectors": save("v4.npy", changed(vectors, (2, slice(6, 9)), 0))}, ["v4.npy", "view 2", "zero"]),
    (cone, {"vectors": save("v5.npy", changed(vectors, (2, slice(9, 12)), 0))}, ["v5.npy", "view 2", "zero"]),
    (cone, {"vectors": save("v6.npy", changed(vectors, (2, slice(0, 3)), [1, 2, 3]))}, ["v6.npy", "view 2", "inside"]),
    (cone, {"vectors": save("v7.npy", changed(vectors, (2, slice(0, 3)), vectors[2, 3:6] + vectors[2, 6:9]))}, ["v7.npy", "plane"]),
    (cone, {"vectors": save("v8.npy", changed(vectors, (2, slice(3, 6)), across))}, ["v8.npy", "misses", "columns"]),
    (cone, {"vectors": save("v9.npy", changed(vectors, (2, slice(3, 6)), 1.5 * vectors[2, :3]))}, ["v9.npy", "behind"]),
    (cone, {"vectors": "problem.json"}, ["problem.json", "numpy.save"]),
    (cone, {"spacing": -0.1}, ["spacing", "above 0"]),
    (cone, {"spacing": "0.1"}, ["spacing", "above 0"]),
    (cone, {"spacing": 1e-3}, ["vectors.npy", "shadow", "voxel size"]),
    (cone, {"spacing": 100}, ["vectors.npy", "inside", "voxel size"]),
    (cone, {"volume": [24, 24]}, ["volume", "[depth, height, width]"]),
    (cone, {"volume": [24, 24, 0]}, ["volume", "[depth, height, width]"]),
    (cone, {"truth": "views.npy"}, ["views.npy", "(24, 24, 24)"]),
    (cone, {"noise": -1}, ["noise"]),
    (cone, {"nose": 0.01}, ["nose"]),
    (cone, {"angles": [0]}, ["angles"]),
    (cone, {"operator": "parallel3d", "vectors": save("v10.npy", changed(plain, (0, slice(0, 3)), 0))}, ["v10.npy", "view 0", "direction"]),
    (radon, {"angles": [0, 1, 2]}, ["sinogram.npy", "3 angles"]),
    (radon, {"angles": ["north"]}, ["angles"]),
    (radon, {"angles": None}, ["angles"]),
    (radon, {"measurement": save("r1.npy", changed(sinogram, (3, 7), np.nan))}, ["r1.npy", "NaN", "row 3, column 7"]),
    (radon, {"measurement": save("r3.npy", sinogram[:, :1])}, ["side", "not 1"]),
    (radon, {"measurement": "y.npy"}, ["y.npy", "3 channel"]),
    (radon, {"size": 1}, ["side", "not 1"]),
    (radon, {"circle": "yes"}, ["circle"]),
    (radon, {"height": "abc"}, ["height", "whole number", "32"]),
    (radon, {"width": 20.5}, ["width", "whole number", "32"]),
    (radon, {"size": [32]}, ["size", "whole number", "32"]),
    (blur, {"channels": 3.5}, ["channels", "whole number"]),
    (cone, {"height": False}, ["height", "whole number"]),
    (radon, {"truth": ""}, ["truth", "name of a file"]),
    (radon, {"measurement": ""}, ["measurement", "name of a file"]),
    (cone, {"vectors": 5}, ["vectors", "name of a file"]),
    (radon, {"truth": "truth.npy"}, ["truth.npy", "(32, 32, 1)"]),
    (radon, {"operator": "wave"}, ["wave", "blur", "radon", "cone"]),
    (blur, {"angles": [0, 90, 100, 120, 140]}, ["y.npy", "5 angles"]),
    (blur, {"sigma": [1]}, ["sigma"]),
    (blur, {"sigma": [0, 1]}, ["sigma"]),
    (blur, {"sigma": [1e5, 1]}, ["100000", "side"]),
    (blur, {"measurement": save("b1.npy", changed(np.load(bench.path("y.npy")), (3, 7, 1), np.inf))}, ["b1.npy", "infinite", "row 3, column 7"]),
    (blur, {"truth": "sinogram.npy"}, ["sinogram.npy", "(32, 24, 3)"]),
    (blur, {"range": [1, 0]}, ["range"]),
    (blur, {"range": [0, 1e-39]}, ["range", "1e-39", "scale"]),
    (blur, {"range": [0, 1e39]}, ["range", "1e+39", "scale"]),
    (blur, {"range": [0, 1e-37], "measurement": save("b2.npy", np.full((96, 24, 3), 1e3, np.float32)), "truth": None}, ["b2.npy", "range"]),
    (blur, {"measurement": save("b3.npy", changed(np.zeros((96, 24, 3), np.float32), slice(0, 96, 20), 3e38)), "range": [0, 1]}, ["measurements", "too large"]),
    (radon, {"measurement": save("r4.npy", np.full((20, 32), 3e38, np.float32))}, ["measurements", "too large"]),
    (cone, {"measurement": save("c8.npy", np.full((20, 27, 27), 3e38, np.float32))}, ["measurements", "too large"]),
]
for good, change, words in cases:
    entries = {key: value for key, value in {**good, **change}.items() if value is not None}
    bench.check_refused(bench.run("reconstruct", kept, "--problem", problem_file(entries)), 1, *words)
for good, measurement in ((blur, "b3.npy"), (radon, "r4.npy"), (cone, "c8.npy")):
    for args in (["--step", "auto"], ["--step", "1e-3"], ["--init", "cg"], ["--init", "adjoint"], ["--preset", "deepinv"]):
        entries = {**good, "measurement": measurement, "range": [0, 1]}
        bench.check_refused(bench.run("reconstruct", kept, "--problem", problem_file(entries), *args), 1, "too large")
for text, words in (("{,}", ["JSON"]), ("", ["JSON"]), ("[1]", ["needs to be", "operator"]), ("{}", ["needs to be", "operator"])):
    bench.check_refused(bench.run("reconstruct", kept, "--problem", problem_file(text)), 1, "problem.json", *words)
problem_file(cone)
for status, args, words in [
    (2, ["--problem", "sharpen"], ["--problem sharpen", "deblur", "tomo2d"]),
    (2, [], ["--problem"]),
    (2, ["--problem", "deblur", "--init", "filtered"], ["--init filtered"]),
    (2, ["--problem", "deblur", "--preset", "best"], ["--preset best"]),
    (2, ["--problem", "deblur", "--angles", "3"], ["--angles"]),
    (2, ["--problem", "tomo3d", "--size", "5000"], ["--size 5000"]),
    (1, ["--problem", "tomo3d", "--size", "64", "--memory", "38M"], ["--memory 38M"]),
    (2, ["--problem", "tomo2d", "--image", "truth.npy"], ["--image"]),
    (2, ["--problem", "tomo2d", "--operators", "3"], ["--operators"]),
    (2, ["--problem", "tomo2d", "--save-measurement", "y.png"], ["--save-measurement", ".npy"]),
    (2, ["--problem", "tomo2d", "--side-by-side", kept], ["kept.npy", "two outputs"]),
    (2, ["--problem", "deblur", "--step", "-1"], ["--step"]),
    (2, ["--problem", "deblur", "--inner", "3"], ["--inner 3", "blurs"]),
    (2, ["--problem", "tomo2d", "--inner", "3", "--step", "0.1"], ["--inner 3", "--step"]),
    (2, ["--problem", "deblur", "--size", "64x"], ["--size 64x", "HxW"]),
    (2, ["--problem", "deblur", "--size", "64x32x3"], ["--size 64x32x3", "HxW"]),
    (2, ["--problem", "deblur", "--size", "64x8"], ["--size 64x8", "16 to 65536"]),
    (2, ["--problem", "deblur", "--size", "64x48", "--image", "truth.npy"], ["--size 64x48", "without an --image"]),
    (2, ["--problem", "tomo2d", "--inflate", "level"], ["--inflate level", "image"]),
    (2, ["--problem", "deblur", "--inflate", "halves"], ["--inflate halves", "image"]),
    (2, ["--problem", "tomo3d", "--inflate", "level"], ["--inflate level", "--prior volume"]),
    (2, ["--problem", "deblur", "--tile", "16x16x16"], ["--tile 16x16x16", "image"]),
    (2, ["--problem", "tomo2d", "--size", "64", "--tile", "16x32x32"], ["--tile 16x32x32", "image"]),
    (2, ["--problem", "tomo3d", "--size", "32", "--tile", "16x16x16"], ["--tile 16x16x16", "--prior volume"]),
    (1, ["--problem", "deblur", "--image", "missing.png"], ["missing.png"]),
    (1, ["--problem", "missing.json"], ["missing.json"]),
    (2, ["--problem", "problem.json", "--size", "64"], ["--size"]),
    (2, ["--problem", "problem.json", "--save-measurement", "./views.npy"], ["views.npy", "another name"]),
]:
    bench.check_refused(bench.run("reconstruct", kept, *args, cwd=bench.folder), status, *words)
# Two channels are no picture: told before the work, of an hour here.
save("two.npy", np.load(bench.path("y.npy"))[..., :2])
two = problem_file({**{key: blur[key] for key in ("operator", "angles", "sigma")}, "measurement": "two.npy"})
long = ["--problem", two, "--iterations", "1000000"]
bench.check_refused(bench.run("reconstruct", bench.path("two.png"), *long, timeout=60), 2, "two.png", "PNG", "2 channels")
bench.check_refused(bench.run("reconstruct", kept, "--side-by-side", bench.path("two.png"), *long, timeout=60), 2, "two.png", "PNG", "2 channels")
record, image = run("b.npy", "--problem", two, *few)
bench.check(record and image.shape == (32, 24, 2), "arrays take any number of channels")
problem_file(cone)
# One file under two names, also where there is none yet.
bench.path("link").symlink_to(bench.folder)
for args, words in [
    (["new.npy", "--side-by-side", "./new.npy"], ["new.npy", "two outputs"]),
    (["new.npy", "--side-by-side", "link/new.npy"], ["new.npy", "two outputs"]),
    (["new.npy", "--save-measurement", bench.path("new.npy")], ["new.npy", "two outputs"]),
    (["new.npy", "--side-by-side", "side.npy", "--save-measurement", "./side.npy"], ["side.npy", "two outputs"]),
    (["new.npy", "--json", "new.npy"], ["--json new.npy", "another name"]),
    (["new.npy", "--json", bench.path("new.npy")], ["--json", "another name"]),
    (["new.npy", "--side-by-side", "side.png", "--json", "link/side.png"], ["--json", "another name"]),
    (["new.npy", "--json", "./problem.json", "--problem", "problem.json"], ["--json", "another name"]),
]:
    bench.check_refused(bench.run("reconstruct", "--problem", "tomo2d", "--size", 16, *args, cwd=bench.folder), 2, *words)
bench.check_refused(bench.run("denoise", "truth.npy", "new.npy", "--json", "./truth.npy", cwd=bench.folder), 2, "--json", "another name")
bench.check_refused(bench.run("denoise", "truth.npy", "./truth.npy", "--add-noise", "0.1", "--sigma", "0.1", "--truth", "truth.npy", cwd=bench.folder), 2, "truth.npy", "another name")
bench.check(not bench.path("new.npy").exists(), "and nothing is written")
for entry in ("views.npy", "vectors.npy", "volume.npy"):
    for *verb, option in (["reconstruct", "--json"], ["reconstruct", "--trace"], ["plan", "reconstruct", "--json"]):
        entries = {**cone, "truth": save("volume.npy", np.zeros([size] * 3, np.float32))}
        result = bench.run(*verb, "new.npy", "--problem", problem_file(entries), option, f"link/{entry}", cwd=bench.folder)
        bench.check_refused(result, 2, option, entry, "another name")
bench.path("link").unlink()
flat = save("flat.npy", np.load(bench.path("views.npy")).reshape(len(y), -1))
bench.check_refused(bench.run("reconstruct", kept, "--problem", problem_file({**cone, "measurement": flat})), 1, "flat.npy", "(views, rows, columns)")
bright = bench.path(save("bright.npy", np.full((32, 32, 3), 200, np.float32)))
bench.check_refused(bench.run("reconstruct", kept, "--problem", "deblur", "--image", bright), 1, "bright.npy", "between 0 and 1")
problem_file(cone)
for verb in (["reconstruct"], ["plan", "reconstruct"]):
    for args in (["no/new.npy"], ["new.npy", "--side-by-side", "no/new.png"], ["new.npy", "--save-measurement", "no/y.npy"], ["new.npy", "--json", "no/r.json"]):
        result = bench.run(*verb, *args, "--problem", "deblur", "--size", "512", "--iterations", "1000", cwd=bench.folder, timeout=60)
        bench.check_refused(result, 1, "no/")
away = bench.run("reconstruct", bench.path("no/folder.png"), "--problem", "deblur", "--size", "512", "--iterations", "1000", timeout=60)
bench.check_refused(away, 1, "no/folder.png")
bench.check(kept.read_text() == "kept" and not leftovers(bench.folder), "nothing is lost, nothing half-written is left")
bench.check(np.array_equal(np.load(bench.path("views.npy")), y), "measurements are as they were")
# --- the record and the trace replace no kernel and no view ------------------------------------------------------------

blurs = {"operator": "blur", "kernels": [save("k0.npy", np.ones((3, 3), np.float32)), save("k1.npy", np.ones((1, 3), np.float32))],
         "measurement": save("blurred.npy", np.random.default_rng(1).random((48, 24)).astype(np.float32))}
bench.path("k-link.json").symlink_to("k1.npy")
before = bench.path("k1.npy").read_bytes()
for name, option in [(name, option) for name in ("k0.npy", "k1.npy", "k-link.json") for option in ("--json", "--trace")]:
    result = bench.run("reconstruct", bench.path("kept.npy"), "--problem", problem_file(blurs), *few, option, bench.path(name))
    bench.check_refused(result, 2, option, "is a file of this job")
bench.check(bench.path("k1.npy").read_bytes() == before, "the kernel is kept")
damaged = {**blurs, "boundary": "none"}  # found before all files are known
for name, there, replaced in (("k1.npy", before, False), ("empty.json", b"", True)):
    bench.path(name).write_bytes(there)
    result = bench.run("reconstruct", bench.path("kept.npy"), "--problem", problem_file(damaged), *few, "--trace", bench.path(name))
    bench.check_refused(result, 1, "boundary")
    bench.check((bench.path(name).read_bytes() != there) == replaced, f"a job that fails {'writes' if replaced else 'does not write'} {name}")
for place, value in (("views", 1), ("flats", 2)):
    bench.path(place).mkdir()
    for i in range(8):
        save(f"{place}/v{i}.npy", np.full((1, 24), value, np.float32))
folder = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": 8}, "measurement": "views", "flat": "flats"}
for name in ("views/v3.npy", "flats/v3.npy"):
    for option in ("--json", "--trace"):
        result = bench.run("reconstruct", bench.path("kept.npy"), "--problem", problem_file(folder), *few, option, bench.path(name))
        bench.check_refused(result, 2, option, "another name")
bench.finish()
