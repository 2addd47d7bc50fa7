"""Reconstruction end to end: the quality is above the baseline, planned bytes equal counted bytes, tiles equal the whole image,
and the published loop equals NumPy's iteration by iteration (which runs the network through `tessera denoise`)."""
import math
import sys

from support import MIB, Bench, dncnn, np, picture, read_png, to_integers, write_png, write_safetensors

import replica  # noqa: E402  (without numpy the line above ends with the word for it)

bench = Bench(sys.argv[1])
out = bench.path("out.npy")


def denoised(z, sigma, model):
    np.save(bench.path("z.npy"), np.float32(z))
    result = bench.run("denoise", bench.path("z.npy"), bench.path("d.npy"), "--sigma", sigma, "--model", model, "--zeros-are-data", "--quiet")
    if result.status != 0:
        bench.check(False, f"the network runs alone: {result}")
    return np.load(bench.path("d.npy"))


def check_loop(record, gradient, truth, sigma, model):
    """Zeros, gradient step, denoise, clamp: every iteration's PSNR."""
    told = [i["psnr_db"] for i in record["reconstruct"]["iterations"]]
    found = replica.qualities(np.zeros_like(truth), gradient, lambda z: denoised(z, sigma, model), truth, record["reconstruct"]["step"], len(told))
    worst = max(abs(a - b) for a, b in zip(told, found))
    bench.check(len(told) == 10 and worst < 0.01, f"{record['reconstruct']['problem']}: PSNR of {len(told)} iterations within {worst:.5f} dB of NumPy's")


# --- our defaults ---------------------------------------------------------------------------------------------------

def check_record(args, gain):
    record = bench.record("reconstruct", out, *args)
    plan = bench.record("plan", "reconstruct", out, *args)
    if not record or not plan:
        return
    own, iterations = record["reconstruct"], record["reconstruct"]["iterations"]
    keys = {"psnr_db", "gradient_seconds", "denoise_seconds", "gradient_peak_bytes", "denoise_peak_bytes"}
    bench.check(all(keys <= set(i) for i in iterations) and len(iterations) > 1, f"{own['problem']}: an entry for each iteration")
    bench.check(abs(iterations[-1]["psnr_db"] - record["quality"]["psnr_db"]) < 1e-3, "the last iteration is the result")
    over = record["quality"]["psnr_db"] - own["baseline_psnr_db"]
    bench.check(over >= gain, f"{own['problem']} {record['input']['height']}: {over:.2f} dB above {own['baseline']}")
    planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    bench.check(planned == counted, f"planned {planned} = counted {counted}")
    bench.check(plan["plan"]["peak_bytes"] == planned and plan["command"] == "plan", "plan says the same without running")
    bench.check(max(i["denoise_peak_bytes"] for i in iterations) <= counted["total"], "no part takes more than the whole")
    image = np.load(out)
    bench.check(image.dtype == np.float32 and image.min() >= 0 and image.max() <= 1, "the output is clamped float32")
    return record


check_record(["--problem", "deblur", "--size", "64"], 3)
check_record(["--problem", "deblur", "--size", "96x65"], 3)
first = check_record(["--problem", "deblur", "--size", "128"], 3)
check_record(["--problem", "tomo2d", "--size", "96"], 3)
before = np.load(out)
check_record(["--problem", "tomo3d", "--size", "32", "--side-by-side", bench.path("side.png")], 3)
volume = np.load(out)
bench.check(volume.shape == (32, 32, 32), "a volume is (depth, height, width)")
bench.record("reconstruct", bench.path("slice.png"), "--problem", "tomo3d", "--size", "32")
bench.check(np.array_equal(read_png(bench.path("slice.png")), to_integers(volume[16], np.uint8)), "a picture shows the slice in the middle")
bench.record("reconstruct", out, "--problem", "tomo2d", "--size", "96")
again = bench.record("reconstruct", out, "--problem", "tomo2d", "--size", "96", "--threads", "1")
bench.check(np.array_equal(before, np.load(out)), "one thread gives the same bits")

# The CPU taken for a device with memory of its own: what the host holds is counted apart, pixels stay.
for problem in ("deblur", "tomo2d", "tomo3d"):
    args = [out, "--problem", problem, "--size", "32", "--iterations", "2"]
    bench.record("reconstruct", *args)
    before = np.load(out)
    record = bench.record("reconstruct", *args, env={"TESSERA_QUEUE": "1"})
    if record:
        planned, counted = record["plan"], record["measured"]
        bench.check(planned["peak_bytes"] == counted["peak_bytes"] and planned["peak_bytes"]["io"] == 0 and
                    planned["host_bytes"] == counted["host_bytes"] > 0, f"{problem}: the host's bytes apart")
        bench.check(np.array_equal(before, np.load(out)), f"{problem}: the same bits")

# Most of the host's bytes go to reading the picture, or to writing: what is not held at once is not added up.
np.save(bench.path("large.npy"), np.float32(picture(300, 280)))
write_png(bench.path("large.png"), to_integers(picture(300, 280), np.uint8))
for image, written in (("large.npy", "out.png"), ("large.png", "out.npy"), ("large.png", "out.png")):
    record = bench.record("reconstruct", bench.path(written), "--problem", "deblur", "--image", bench.path(image), "--size", "61", "--iterations", "2",
                          "--side-by-side", bench.path("side.png"), "--save-measurement", bench.path("y.npy"), env={"TESSERA_QUEUE": "1"})
    if record:
        planned, counted = record["plan"]["host_bytes"], record["measured"]["host_bytes"]
        bench.check(planned == counted, f"{image} to {written}: the host's bytes planned {planned} = counted {counted}")

# A volume that does not fit beside the network stays on the host and goes through the device in slabs.
write_safetensors(bench.path("tiny.safetensors"), dncnn(1, 3, 32))
for prior in ("slices", "volume"):
    args = [out, "--problem", "tomo3d", "--size", "64", "--angles", "12", "--model", bench.path("tiny.safetensors"), "--prior", prior, "--iterations", "2"]
    bench.record("reconstruct", *args)
    before = np.load(out)
    record = bench.record("reconstruct", *args, "--memory", "5M", env={"TESSERA_QUEUE": "1"})
    if record:
        planned, counted = record["plan"], record["measured"]
        bench.check(planned["slabs"] > 1 and planned["peak_bytes"]["total"] <= 5 * MIB, f"{prior}: {planned['slabs']} slabs within 5 MiB")
        bench.check(planned["peak_bytes"] == counted["peak_bytes"] and planned["host_bytes"] == counted["host_bytes"] > 4 * MIB, f"{prior}: the volume is the host's")
        bench.check(np.abs(np.load(out) - before).max() < 1e-4, f"{prior}: slabs give what the whole gives")

# --- tiles ----------------------------------------------------------------------------------------------------------

deblur = ["--problem", "deblur", "--size", "160", "--iterations", "2"]
bench.record("reconstruct", out, *deblur)
whole = np.load(out)
bench.record("reconstruct", out, *deblur, "--tile", "64", "--halo", "exact")
bench.check(np.array_equal(whole, np.load(out)), "tiles with exact halos give the bits of the whole image")
limited = ["--problem", "deblur", "--size", "384", "--iterations", "2", "--memory", "100M"]
record = bench.record("reconstruct", out, *limited)
if record:
    bench.check(record["plan"]["tiles"] > 1 and record["measured"]["peak_bytes"]["total"] <= 96 * MIB, "a limit makes tiles and is kept")
bench.check_refused(bench.run("reconstruct", out, *limited[:-1], "40M"), 1, "--memory 40M")

# --- the published loop against NumPy -------------------------------------------------------------------------------

size, blurs = 96, 3
truth = picture(size, 80)
np.save(bench.path("truth.npy"), truth)
model = "drunet-color-small"
record = bench.record("reconstruct", out, "--problem", "deblur", "--image", bench.path("truth.npy"), "--operators", blurs,
                      "--preset", "deepinv", "--iterations", "10", "--save-measurement", bench.path("y.npy"))
if record:
    y = np.load(bench.path("y.npy")).reshape(blurs, size, 80, 3)
    bench.check(y.min() >= 0 and y.max() <= 1, "measurements are clamped")
    bench.check(0.08 < np.std(y[0] - y[2]) / math.sqrt(2) < 0.12, "blurs at 0 and 180 degrees differ by their noise alone")
    spectra = []
    for angle in np.linspace(0, 180, blurs):
        sa, sb, t = 0.01 * size, 0.005 * size, math.radians(angle)
        half = int(max(sa, sb) / 0.3 + 1)
        v, u = np.mgrid[-half:half + 1, -half:half + 1].astype(np.float64)
        u, v = u * math.cos(t) - v * math.sin(t), u * math.sin(t) + v * math.cos(t)
        kernel = np.exp(-u**2 / (2 * sb**2) - v**2 / (2 * sa**2))
        padded = np.zeros((size, 80))
        padded[:2 * half + 1, :2 * half + 1] = kernel / kernel.sum()
        spectra.append(np.fft.rfft2(np.roll(padded, (-half, -half), (0, 1)))[..., None])

    def blur_gradient(x):
        sum_of = 0
        for spectrum, seen in zip(spectra, y):
            sum_of = sum_of + np.conj(spectrum) * (spectrum * np.fft.rfft2(x, axes=(0, 1)) - np.fft.rfft2(seen, axes=(0, 1)))
        return np.fft.irfft2(sum_of, s=x.shape[:2], axes=(0, 1))

    bench.check(record["reconstruct"]["step"] == 0.1, "the published step")
    check_loop(record, blur_gradient, truth, 0.005, model)

size, views = 48, 20
model = "drunet-gray-small"
record = bench.record("reconstruct", out, "--problem", "tomo2d", "--size", size, "--angles", views, "--preset", "deepinv", "--iterations", "10",
                      "--save-measurement", bench.path("sinogram.npy"), "--side-by-side", bench.path("side.npy"))
if record:
    sinogram, truth = np.load(bench.path("sinogram.npy")), np.load(bench.path("side.npy"))[:, -size:]
    g = 2 * np.arange(size) / (size - 1) - 1
    inside = (g[None, :] ** 2 + g[:, None] ** 2 <= 1).astype(np.float64)
    matrix = np.zeros((views, size, size * size))
    for a, angle in enumerate(np.linspace(0, 180, views + 1)[:-1]):
        t = math.radians(angle)
        s, h = np.meshgrid(g, g, indexing="ij")
        px = (s * math.cos(t) + h * math.sin(t) + 1) * (size - 1) / 2
        py = (-s * math.sin(t) + h * math.cos(t) + 1) * (size - 1) / 2
        for dy in (0, 1):
            for dx in (0, 1):
                col, row = np.floor(px).astype(int) + dx, np.floor(py).astype(int) + dy
                weight = (1 - np.abs(px - col)) * (1 - np.abs(py - row))
                good = (col >= 0) & (col < size) & (row >= 0) & (row < size)
                bins = np.broadcast_to(np.arange(size)[:, None], px.shape)
                np.add.at(matrix[a], (bins[good], row[good] * size + col[good]), weight[good])
    matrix = matrix.reshape(views * size, -1) * inside.reshape(1, -1)
    norm = np.linalg.norm(matrix, 2) ** 2
    told = record["reconstruct"]["norm_squared"]
    bench.check(abs(told - norm) < 1e-2 * norm, f"the power method gives {told:.1f}, the largest singular value {norm:.1f}")
    bench.check(abs(record["reconstruct"]["step"] * told - 0.99) < 1e-6, "the step is 0.99 / |A|^2")
    noise = np.std(sinogram.reshape(-1) - matrix @ truth.reshape(-1).astype(np.float64))
    bench.check(abs(noise - 0.01) < 2e-3, f"the noise of the sinogram is {noise:.4f}")
    check_loop(record, lambda x: (matrix.T @ (matrix @ x.reshape(-1) - sinogram.reshape(-1))).reshape(size, size), truth, 0.01, model)

# --- a step that is too long, stopping ------------------------------------------------------------------------------

for problem in ("deblur", "tomo2d"):
    record = bench.record("reconstruct", out, "--problem", problem, "--size", "48", "--step", "100", "--iterations", "3")
    if record:
        bench.check(record["reconstruct"]["step_halvings"] > 0 and record["reconstruct"]["step"] < 1, f"{problem}: a step of 100 is halved")
record = bench.record("reconstruct", out, "--problem", "tomo2d", "--size", "48", "--max-seconds", "1e-6")
bench.check(bool(record) and len(record["reconstruct"]["iterations"]) == 1, "time stops it")
record = bench.record("reconstruct", out, "--problem", "tomo2d", "--size", "48", "--tolerance", "10")
bench.check(bool(record) and len(record["reconstruct"]["iterations"]) == 1, "a small change stops it")
bench.finish()
