"""Blurred pictures whose noise has lost its high frequencies, as in JPEG files and after demosaicing: the result is not worse than its input."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SIZE, REACH = 128, 5
y, x = np.mgrid[0:SIZE + 2 * REACH, 0:SIZE + 2 * REACH]
scene = 0.45 + 0.2 * np.sin(x / 9) * np.cos(y / 6) + 0.25 * (np.hypot(y - 50, x - 40) < 22) - 0.2 * (np.abs(y - x - 20) < 6)
truth = scene[REACH:-REACH, REACH:-REACH]
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
kernel = np.exp(-(u * u + v * v) / 4.5)
kernel /= kernel.sum()
np.save(bench.path("k.npy"), kernel)
side = range(2 * REACH + 1)
blurred = sum(kernel[i, j] * scene[2 * REACH - i:2 * REACH - i + SIZE, 2 * REACH - j:2 * REACH - j + SIZE] for i in side for j in side)
white = np.random.default_rng(0).normal(size=(SIZE, SIZE))
wave = np.fft.fftfreq(SIZE)
radius = np.hypot(wave[:, None], wave[None])


def filtered(response):
    return np.real(np.fft.ifft2(np.fft.fft2(white) * response))


def psnr(image):
    return -10 * np.log10(np.mean((image - truth) ** 2))


bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy"}))
triangle = (np.cos(np.pi * wave[:, None]) * np.cos(np.pi * wave[None])) ** 2  # the mean of neighbours, as in demosaicing
cases = [("no noise", 0, 1), ("white", 0.012, 1), ("white", 0.03, 1), ("demosaiced", 0.016, triangle), ("demosaiced", 0.03, triangle),
         ("without high frequencies", 0.012, radius < 0.3), ("without high frequencies", 0.03, radius < 0.3)]
for name, level, response in cases:
    noisy = (blurred + level * filtered(response)).clip(0, 1)
    np.save(bench.path("y.npy"), (np.rint(255 * noisy) / 255).astype("f4"))
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
    if not record:
        continue
    was, now, taken = psnr(noisy), psnr(np.load(bench.path("out.npy"))), record["reconstruct"]["noise"]
    bench.check(now > was + 0.5, f"noise {level}, {name}: {now:.2f} dB from {was:.2f}, noise taken as {taken:.4f}")
    if name == "white":
        bench.check(abs(taken / level - 1) < 0.15, "white noise is estimated as such")
# The steps of a JPEG say what its error is; in a photograph little else does.
try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    gdal = None
    print("without GDAL's Python module (Debian: python3-gdal) JPEG files are left out")
if gdal:
    from pathlib import Path
    scene = gdal.Open(str(Path(__file__).resolve().parents[2] / "docs/pictures/dog.png")).ReadAsArray()[:3, 40:180, 60:220] / 255
    rows, columns = scene.shape[1] - 2 * REACH, scene.shape[2] - 2 * REACH
    truth = scene[:, REACH:-REACH, REACH:-REACH]
    blurred = sum(kernel[i, j] * scene[:, 2 * REACH - i:2 * REACH - i + rows, 2 * REACH - j:2 * REACH - j + columns] for i in side for j in side)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.jpg"}))
for quality in (75, 50, 25) if gdal else ():
    memory = gdal.GetDriverByName("MEM").Create("", columns, rows, 3, gdal.GDT_Byte)
    for c in range(3):
        memory.GetRasterBand(c + 1).WriteArray(np.rint(255 * blurred[c].clip(0, 1)).astype("u1"))
    gdal.GetDriverByName("JPEG").CreateCopy(str(bench.path("y.jpg")), memory, options=[f"QUALITY={quality}"])
    was = psnr(gdal.Open(str(bench.path("y.jpg"))).ReadAsArray() / 255)
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
    now = psnr(np.moveaxis(np.load(bench.path("out.npy")), 2, 0) / 255) if result.status == 0 else 0
    bench.check(now > was + 0.3, f"JPEG of quality {quality}: {now:.2f} dB from {was:.2f}, {result.err[-90:]!r}")
    if quality == 75:  # a camera's noise is less than what the file adds
        record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--noise", "1")
        own = record["reconstruct"] if record else {}
        given = psnr(np.moveaxis(np.load(bench.path("out.npy")), 2, 0) / 255)
        bench.check(given > now - 0.1 and own.get("noise", 0) > 3 and own.get("given_noise") == 1, f"with a noise of 1 that is given: {given:.2f} dB, noise {own.get('noise')}, {own.get('given_noise')} given")
bench.finish()
