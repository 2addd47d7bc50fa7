"""Measured blurs: a camera sees the middle of a larger scene, and the kernels are arrays of any shape. The border of
the picture is restored as well as its middle; errors in the files are reported; nothing is created that will not fit."""
import json
import math
import sys

from support import MIB, Bench, np

bench = Bench(sys.argv[1])
height, width, reach, noise = 52, 60, 7, 0.005


def save(name, array):
    np.save(bench.path(name), np.asarray(array))
    return name


def problem(**entries):
    path = bench.path("problem.json")
    path.write_text(json.dumps({key: value for key, value in entries.items() if value is not None}))
    return path


def scene(rows, columns):
    """Bright at the right and at the bottom, so that what a circle brings in from there shows."""
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float64)
    ramp = 0.15 + 0.4 * x / columns + 0.3 * y / rows
    planes = [ramp + 0.12 * (np.hypot(y - rows / 3, x - columns / (2 + c)) < rows / 5) - 0.1 * ((x + (2 + c) * y) % 31 < 9) for c in range(3)]
    return np.clip(np.stack(planes, -1), 0, 1)


def blurred(image, kernel):
    """The part of a linear convolution that the image alone decides."""
    rows, columns = (n - 1 for n in kernel.shape)
    out = 0
    for i in range(rows + 1):
        for j in range(columns + 1):
            out = out + kernel[i, j] * image[rows - i:image.shape[0] - i, columns - j:image.shape[1] - j]
    return out


def db(a, b, where=...):
    return -10 * math.log10(np.mean((np.float64(a) - b)[where] ** 2))


def streak(turned):
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    for i in range(2 * reach + 1):
        kernel[i, 2 + i * 10 // (2 * reach)] = 1 + 0.3 * i
    return np.rot90(kernel, turned).copy()


def run(**entries):
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**entries))
    return record, np.load(bench.path("out.npy")) if record else None


border = np.ones((height, width), bool)
border[reach:-reach, reach:-reach] = False
middle = np.zeros((height, width), bool)
middle[2 * reach:-2 * reach, 2 * reach:-2 * reach] = True
wide = scene(height + 2 * reach, width + 2 * reach)
truth = wide[reach:-reach, reach:-reach]
random = np.random.default_rng(3)

turned = math.radians(30)
v, u = np.mgrid[-reach:reach + 1, -reach:reach + 1].astype(np.float64)
u, v = u * math.cos(turned) - v * math.sin(turned), u * math.sin(turned) + v * math.cos(turned)
gauss = np.exp(-u**2 / 2 - v**2 / (2 * 1.9**2))
cases = {"kernels": [streak(0), streak(1), streak(2) * 5], "gaussian": [gauss]}
for name, kernels in cases.items():
    y = np.stack([blurred(wide, kernel / kernel.sum()) for kernel in kernels])
    y = np.float32(y + noise * random.standard_normal(y.shape))
    common = dict(operator="blur", measurement=save(f"{name}.npy", y.reshape(-1, width, 3)), truth=save("truth.npy", np.float32(truth)), noise=noise)
    if name == "kernels":
        common["kernels"] = [save(f"k{i}.npy", kernel) for i, kernel in enumerate(kernels)]
    else:
        common.update(angles=[30], sigma=[1.9, 1.0])
    record, out = run(**common)
    circle, wrong = run(**common, boundary="circular")
    if not record or not circle:
        continue
    bench.check(out.shape == truth.shape and record["reconstruct"]["boundary"] == "unknown" and circle["reconstruct"]["boundary"] == "circular",
                f"{name}: unknown boundaries are the default, and the result has the size of the measurement")
    seen, whole, inner, edge = db(y.mean(0), truth, border), db(out, truth), db(out, truth, middle), db(out, truth, border)
    bench.check(edge > seen + 1 and whole > inner - 1.5, f"{name}: border {seen:.1f} dB measured, {edge:.1f} dB; whole {whole:.1f} dB, middle {inner:.1f} dB")
    bench.check(edge > db(wrong, truth, border) + 4, f"{name}: a circle has {db(wrong, truth, border):.1f} dB there")
    bench.check(abs(record["quality"]["psnr_db"] - whole) < 0.01, "the record's PSNR is that of what is written")
    bench.check(abs(record["reconstruct"]["baseline_psnr_db"] - db(np.clip(y.mean(0), 0, 1), truth)) < 0.01, "the baseline is the mean of the measurements")
    bench.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"] and circle["plan"]["peak_bytes"] == circle["measured"]["peak_bytes"], "planned = counted")
    apart = bench.record("reconstruct", bench.path("apart.npy"), "--problem", problem(**common), env={"TESSERA_QUEUE": "1"})
    bench.check(bool(apart) and np.array_equal(np.load(bench.path("apart.npy")), out) and apart["plan"]["peak_bytes"] == apart["measured"]["peak_bytes"] and
                apart["plan"]["host_bytes"] == apart["measured"]["host_bytes"], "a device with memory of its own: the same bits, and bytes as planned")
    if name == "kernels":
        _, scaled = run(**{**common, "kernels": [save(f"s{i}.npy", np.float32(kernel * 2.0**i)) for i, kernel in enumerate(kernels)]})
        bench.check(np.abs(scaled - out).max() < 1e-4, "kernels are divided by their sum")
        _, mirrored = run(**{**common, "kernels": [save(f"m{i}.npy", kernel[::-1, ::-1]) for i, kernel in enumerate(kernels)]})
        bench.check(db(mirrored, truth) < whole - 3, f"a kernel has a direction: {db(mirrored, truth):.1f} dB turned around")
        side = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**common), "--side-by-side", bench.path("side.npy"), "--inner", 3, "--iterations", 1)
        if side:
            picture = np.load(bench.path("side.npy"))
            bench.check(np.allclose(picture[:, :width], np.clip(y[0], 0, 1)) and np.allclose(picture[:, -width:], truth, atol=1e-6) and
                        np.array_equal(picture[:, width + 8:2 * width + 8], np.load(bench.path("out.npy"))), "side by side: measurement, result, truth")
            bench.check(side["reconstruct"]["data_step"] == "conjugate gradients" and side["reconstruct"]["inner"] == 3, "--inner counts the steps")

# Zeros outside, as a convolution that keeps the size assumes them: the border is restored as well. Other dark borders are none of that.
disc = np.float64(np.hypot(*np.mgrid[-reach:reach + 1, -reach:reach + 1]) < 3.4)
down, across = np.mgrid[-1:1:height * 1j, -1:1:width * 1j]
for name, kernel in (("Gaussian", gauss), ("disc", disc)):
    for label, outside in (("zeros outside", 0), ("vignetting", 1)):
        sharp = truth * (1 - 0.3 * (down**2 + across**2))[..., None] if outside else truth
        dim = blurred(np.pad(sharp, ((reach, reach), (reach, reach), (0, 0)), "edge" if outside else "constant"), kernel / kernel.sum())
        np.save(bench.path("zeros.npy"), np.rint(255 * np.clip(dim, 0, 1)).astype(np.uint8))
        result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(operator="blur", measurement="zeros.npy", kernel=save("k.npy", kernel)), "--json", bench.path("r.json"))
        out = np.load(bench.path("out.npy")) / 255 if bench.check(result.status == 0, f"runs: {result}") else dim
        own = json.loads(bench.path("r.json").read_text())["reconstruct"]
        if outside:
            bench.check("black_outside" not in own and "zeros outside" not in result.err, f"{label}, {name}: {result.err}")
            continue
        seen, edge, inner = db(dim, truth, border), db(out, truth, border), db(out, truth, middle)
        bench.check(own.get("black_outside") is True and "zeros outside" in result.err and edge > inner - 4, f"{label}, {name}: border {seen:.1f} dB measured, {edge:.1f} dB, middle {inner:.1f} dB: {result.err}")

# A kernel that is wider than the picture: making it takes more of the host than anything after it.
flat = dict(operator="blur", measurement=save("gray.npy", y[0, :, :, 0]), kernel=save("flat.npy", np.ones((301, 301))))
for env in ({}, {"TESSERA_QUEUE": "1"}):
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**flat), "--iterations", 1, env=env)
    if record:
        host = "host_bytes" if env else "peak_bytes"
        bench.check(record["plan"][host] == record["measured"][host], f"a wide kernel: {host} planned {record['plan'][host]} = counted {record['measured'][host]}")

# Kernels of integers are the same kernels; the axis of one channel stays; a constant picture is called constant.
counted = np.outer([1, 2, 4, 2, 1], [1, 3, 9, 3, 1])
gray = dict(operator="blur", measurement="gray.npy", kernel=save("counted.npy", counted.astype(float)), noise=0.01)
bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**gray), "--iterations", 1)
first = np.load(bench.path("out.npy"))
for kind in ("u1", "u2", "i4", ">i2", "f4"):
    bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**{**gray, "kernel": save("integers.npy", counted.astype(kind))}), "--iterations", 1)
    bench.check(np.array_equal(np.load(bench.path("out.npy")), first), f"a kernel of type {kind}")
bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(**{**gray, "measurement": save("gray1.npy", y[0, :, :, :1])}), "--iterations", 1)
bench.check(np.array_equal(np.load(bench.path("out.npy")), first[..., None]), "(H,W,1) gives (H,W,1)")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(operator="blur", kernel="counted.npy", measurement=save("constant.npy", np.full((40, 50), 0.5, np.float32))), "--iterations", 1)
bench.check(result.status == 0 and "all its values are equal" in result.err, f"a constant picture is called so: {result.err.strip()}")

# --- without noise, and said so: not worse than the level that is estimated -------------------------------------------

disc = np.hypot(*np.mgrid[-5:6, -5:6]) < 4.7
wide = scene(height + 10, width + 10)
inside = wide[5:-5, 5:-5]
save("sharp.npy", np.float32(blurred(wide, disc / disc.sum())))
save("disc.npy", disc / disc.sum())
errors = {}
for level in (None, 0, 0.0003):
    out = bench.path("sharp-out.npy")
    bench.record("reconstruct", out, "--problem", problem(operator="blur", measurement="sharp.npy", kernel="disc.npy", noise=level))
    errors[level] = math.sqrt(np.mean((np.load(out) - inside) ** 2))
bench.check(max(errors[0], errors[0.0003]) < 1.02 * errors[None], f"errors with noise not given, 0 and 0.0003: {errors}")

# --- what is wrong is refused ----------------------------------------------------------------------------------------

kept = bench.path("kept.npy")
kept.write_text("kept")
good = dict(operator="blur", measurement="kernels.npy", kernels=["k0.npy", "k1.npy", "k2.npy"], truth="truth.npy")
y = np.load(bench.path("kernels.npy"))
holes = y.copy()
holes[3:5, 7, 1] = np.nan
holes[9, 2, 0] = -np.inf
hollow = np.float32(truth)
hollow[2, 3] = np.nan
for change, words in [
    ({"boundary": "mirror"}, ["boundary", "unknown", "circular"]),
    ({"boundary": 1}, ["boundary"]),
    ({"angles": [0, 1, 2]}, ["twice"]),
    ({"kernel": "k0.npy"}, ["twice"]),
    ({"kernels": []}, ["kernels", "list"]),
    ({"kernels": "k0.npy"}, ["kernels", "list"]),
    ({"kernels": ["k0.npy", 3, "k1.npy"]}, ["kernels", "name"]),
    ({"kernels": ["k0.npy", "missing.npy", "k1.npy"]}, ["missing.npy"]),
    ({"kernels": ["k0.npy", "k1.npy"] * 4}, ["kernels.npy", "8 kernels"]),
    ({"kernels": ["k0.npy", save("even.npy", np.ones((4, 5))), "k1.npy"]}, ["even.npy", "kernel 1", "4x5", "odd"]),
    ({"kernels": ["k0.npy", save("nan.npy", np.full((3, 3), np.nan)), "k1.npy"]}, ["nan.npy", "9 values", "finite"]),
    ({"kernels": ["k0.npy", "k1.npy", save("zero.npy", np.array([[1.0, -2, 1]]))]}, ["zero.npy", "sums to 0"]),
    ({"kernels": None}, ["angles", "kernels", "kernel"]),
    ({"measurement": save("chw.npy", np.ascontiguousarray(y.transpose(2, 0, 1)))}, ["chw.npy", "(channels, height, width)", "to the end"]),
    ({"truth": save("tchw.npy", np.ascontiguousarray(np.float32(truth).transpose(2, 0, 1)))}, ["tchw.npy", "(channels, height, width)"]),
    ({"measurement": save("many.npy", np.ones((6, 40, 14), np.float32))}, ["many.npy", "2 rows of 40 columns with 14 channels", "to the end"]),
    ({"measurement": save("stack.npy", np.ones((21, 64, 80), np.float32)), "kernels": ["k0.npy"], "truth": None}, ["stack.npy", "80 channels", "HWC", "to the end"]),
    ({"axes": "CHW"}, ["axes", "HWC"]),
    ({"axes": "HW"}, ["kernels.npy", "HW"]),
    ({"measurement": save("holes.npy", holes), "missing": False}, ["holes.npy", f"of {y.size} values 2 are NaN and 1 infinite", "row 3, column 7"]),
    ({"measurement": "holes.npy", "boundary": "circular"}, ["holes.npy", "2 are NaN"]),
]:
    bench.check_refused(bench.run("reconstruct", kept, "--problem", problem(**{**good, **change})), 1, *words)
bench.check_refused(bench.run("reconstruct", kept, "--problem", "deblur", "--image", bench.path("tchw.npy")), 1, "tchw.npy", "(channels, height, width)")
save("image.npy", hollow)
save("bands.npy", np.tile(np.float32(truth[:32, :32]), (1, 1, 6)))
out = bench.path("bands-out.npy")
record = bench.record("reconstruct", out, "--problem", problem(operator="blur", measurement="bands.npy", kernel="k0.npy", axes="HWC", truth="bands.npy", noise=0.01), "--iterations", 1)
bench.check(record and np.load(out).shape == np.load(bench.path("bands.npy")).shape, "many channels are taken when the problem says so")
for more in ([], ["--size", 32]):
    bench.check_refused(bench.run("reconstruct", kept, "--problem", "deblur", "--image", bench.path("image.npy"), *more), 1, "image.npy", "3 are NaN", "row 2, column 3")
sinogram = np.ones((5, 16), np.float32)
sinogram[1:3, 4:6] = np.nan
save("sinogram.npy", sinogram)
bench.check_refused(bench.run("reconstruct", kept, "--problem", problem(operator="radon", angles=[0, 30, 60, 90, 120], measurement="sinogram.npy")), 1,
                    "sinogram.npy", "of 80 values 4 are NaN and 0 infinite", "row 1, column 4")
bench.check_refused(bench.run("reconstruct", bench.path("k0.npy"), "--problem", problem(**good)), 2, "k0.npy", "read by this problem")
bench.check_refused(bench.run("reconstruct", kept, "--problem", problem(**good, boundary="circular"), "--inner", 3), 2, "--inner 3", "circular")
bench.check_refused(bench.run("reconstruct", kept, "--problem", "tomo2d", "--init", "mean"), 2, "--init mean")
bench.check(kept.read_text() == "kept", "nothing that was there is lost")

# --- a limit is looked at before anything is made, and a side has a limit of its own ---------------------------------

result = bench.run("plan", "reconstruct", kept, "--problem", "deblur", "--size", 16381, "--memory", "300M", watch=True)
bench.check_refused(result, 1, "--memory 300M")
bench.check(result.peak < 1024 * MIB, f"it is refused with {result.peak / MIB:.0f} MiB")
np.lib.format.open_memmap(bench.path("long.npy"), mode="w+", dtype=np.float32, shape=(1, 16777213))
bench.check_refused(bench.run("plan", "reconstruct", kept, "--problem", problem(operator="blur", angles=[0], sigma=[1, 1], measurement="long.npy")), 1, "long.npy", "65536")
bench.finish()
