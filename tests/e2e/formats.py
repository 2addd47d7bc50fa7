"""formats.py PROGRAM: files as other programs write them: what they say of their samples, frames and colours is heard, whatever the format."""
import base64
import gzip
import struct
import subprocess
import sys
import time

from support import MIB, Bench, high_water, np, png_chunk, psnr, read_png, to_integers, write_png
from tiff import tags_of, write_tiff

bench = Bench(sys.argv[1])
if not bench.has_gdal():
    bench.finish()
random = np.random.default_rng(31)
y, x = np.mgrid[0:96, 0:112]
clean = 0.5 + 0.3 * np.sin(x / 7) * np.cos(y / 11) + 0.1 * (np.hypot(y - 50, x - 60) < 20)

# --- primary colours without a profile, of which GDAL makes tables of 2^32 numbers -----------------------------------

primaries = {318: (5, struct.pack("<4I", 3127, 10000, 3290, 10000)), 319: (5, struct.pack("<12I", *(n for i in range(6) for n in (i + 1, 10))))}
for dtype, one in ((np.float32, 1), (np.uint32, 2**32 - 1)):
    colours = np.stack([clean * one] * 3, -1).astype(dtype)
    source = write_tiff(bench.path("primaries.tif"), colours, photometric=2, tags=primaries,
                        items='<Item name="sensor" domain="A &amp; B">x</Item><Item name="other" sample="0" domain="C">y</Item>')
    process = bench.start("denoise", source, bench.path("out.tif"), "--range", f"0,{one}", "--sigma", "0.02", stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, high_water(process.pid))
        if peak > 2048 * MIB:
            process.kill()
        time.sleep(0.002)
    good = bench.check(process.returncode == 0 and peak < 2048 * MIB,
                       f"{dtype.__name__} with primary colours: status {process.returncode}, {peak // MIB} MiB")
    items = tags_of(bench.path("out.tif"))[42112] if good else b""
    bench.check(b'name="sensor" domain="A &amp; B"' in items and b'domain="C"' in items, f"tags in any domain are kept: {items}")


# --- files that say which sample is white ----------------------------------------------------------------------------

def write_pnm(path, samples, most):
    height, width = samples.shape[:2]
    kind = b"P6" if samples.ndim == 3 else b"P5"
    path.write_bytes(kind + b"\n# made by hand\n%d %d # size\n%d\n" % (width, height, most) + samples.astype(">u2" if most > 255 else "u1").tobytes())
    return path


def denoise(source, target, *options):
    """The record's entry and what was said."""
    run = bench.run("denoise", source, target, *options, "--json", "-", "--verbose")
    bench.check(run.status == 0, f"runs: {run}")
    return (run.record["denoise"]["files"][0] if run.status == 0 else {}), run.err


noisy = np.clip(clean + 0.03 * random.standard_normal(clean.shape), 0, 1)
for most in (100, 1023, 4095, 65535):
    kind = np.uint8 if most < 256 else np.uint16
    full = np.iinfo(kind).max
    source = write_pnm(bench.path("white.pgm"), np.rint(noisy * most), most)
    truth = write_pnm(bench.path("truth.pgm"), np.rint(clean * most), most)
    for name in ("white.png", "white.tif", "white.npy"):
        entry, said = denoise(source, bench.path(name), "--sigma", "0.03", "--truth", truth)
        bench.check(entry.get("range") == [0, most] and entry.get("psnr_db", 0) > psnr(noisy, clean) + 3, f"maximum {most}: {entry}")
        bench.check((f"with 0 to {most} scaled to 0 to {full}" in said) == (most != full), f"a note says what is written: {said}")
        if name != "white.tif":
            result = read_png(bench.path(name)) if name.endswith("png") else np.load(bench.path(name))
            bench.check(result.dtype == kind and abs(result.mean() / full - clean.mean()) < 0.005, f"{name}: white stays white: {result.mean() / full}")
    entry, _ = denoise(source, bench.path("white.png"))
    result = read_png(bench.path("white.png"))
    bench.check(abs(entry["sigma"] - 0.03) < 0.005 and abs(result.mean() / full - clean.mean()) < 0.005, f"{most}: sigma is estimated on its scale: {entry}")
    entry, _ = denoise(source, bench.path("white.jpg"))
    entry, _ = denoise(bench.path("white.jpg"), bench.path("white.npy"), "--strength", "0")
    bench.check(abs(np.load(bench.path("white.npy")).mean() / 255 - clean.mean()) < 0.01, "in JPEG too")
entry, said = denoise(write_pnm(bench.path("c.ppm"), np.rint(np.stack([noisy] * 3, -1) * 1023), 1023), bench.path("c.png"), "--strength", "0")
bench.check(np.abs(read_png(bench.path("c.png")) - np.rint(noisy * 1023)[..., None] * 65535 / 1023).max() <= 0.51, f"colours are scaled exactly: {said}")
bench.path("x.pgm").write_bytes(b"P5 112 96 4095" + b"\n" + np.rint(noisy * 4095).astype(">u2").tobytes())
bench.path("x.pgm.aux.xml").write_text("<PAMDataset><PAMRasterBand band='1'><NoDataValue>7</NoDataValue></PAMRasterBand></PAMDataset>")
entry, said = denoise(bench.path("x.pgm"), bench.path("x.npy"))
bench.check("written_as" not in entry and abs(np.load(bench.path("x.npy")).mean() / 4095 - clean.mean()) < 0.005, f"numbers with a nodata value keep it: {entry}")

# --- JPEG of 12 bits, and of inks --------------------------------------------------------------------------------------

TWELVE = base64.b64decode("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/wQALDAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAA"
                          "AAAACgn/xAAaEAACAgMAAAAAAAAAAAAAAAAACAQGOHe1/9oACAEBAAA/AIfjSEhwEXLV9Z5cYFuNISHARctX1nlxj//Z")  # 1600 and 2560
INKS = base64.b64decode("/9j/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/wAAUCAAQABAEABEAAREAAhEAAxEA/8QAGAABAQADAAAAAAAAAAAAAAAAAAYEBQf/xAAaEAEAAQUA"
                        "AAAAAAAAAAAAAAAABAECNXOx/9oADgQAAAEAAgADAAA/ANGMd0hawcfG1W8oAilkC1g4+Nqt5QB//9k=")
bench.path("twelve.jpg").write_bytes(TWELVE)
run = bench.run("denoise", bench.path("twelve.jpg"), bench.path("twelve.png"), "--strength", "0", "--sigma", "0.02", "--json", "-")
if run.status == 0:
    entry, result = run.record["denoise"]["files"][0], read_png(bench.path("twelve.png"))
    bench.check(entry["range"] == [0, 4095] and abs(result[0, 0] - 1600 / 4095 * 65535) < 100, f"12 bits end at 4095: {entry}, {result[0, 0]}")
else:  # of a GDAL without them
    bench.check_refused(run, 1, "twelve.jpg", "12 bits", "convert")
bench.path("ten.jpg").write_bytes(TWELVE.replace(b"\xff\xc1\0\x0b\x0c", b"\xff\xc1\0\x0b\x0a"))
bench.check_refused(bench.run("denoise", bench.path("ten.jpg"), bench.path("ten.png")), 1, "ten.jpg", "a JPEG of 10 bits", "convert")
adobe = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0"
for name, inks, unclear in (("plain", INKS, True), ("adobe", INKS[:2] + adobe + INKS[2:], False)):
    bench.path("inks.jpg").write_bytes(inks)
    _, said = denoise(bench.path("inks.jpg"), bench.path(f"{name}.png"), "--sigma", "0.02", "--strength", "0")
    bench.check("CMYK colours are read as RGB" in said and ("whether 0 is all ink or none" in said) == unclear, f"inks with {name} markers: {said}")
bench.check(np.array_equal(read_png(bench.path("plain.png")), read_png(bench.path("adobe.png"))), "both are read alike")


# 12 bits in a TIFF, packed: two samples in three bytes
numbers = np.rint(np.minimum(noisy * 1.3, 1) * 4095).astype(np.uint32).reshape(-1, 2)
packed = np.stack([numbers[:, 0] >> 4, (numbers[:, 0] & 15) << 4 | numbers[:, 1] >> 8, numbers[:, 1] & 255], -1).astype(np.uint8).reshape(96, -1)
bits = write_tiff(bench.path("bits.tif"), packed, tags={256: (3, struct.pack("<H", 112)), 258: (3, struct.pack("<H", 12))})
entry, said = denoise(bits, bench.path("bits.npy"), "--sigma", "0.04")
result = np.load(bench.path("bits.npy"))
bench.check(entry.get("range") == [0, 4095] and "written_as" not in entry and "end at 4095" in said, f"12 bits keep their numbers in an array: {entry}")
bench.check(4000 < result.max() <= 4095, f"and end at 4095: {result.max()}")
entry, said = denoise(bits, bench.path("bits.png"), "--strength", "0")
bench.check(np.abs(read_png(bench.path("bits.png")).ravel() - numbers.ravel() * 65535 / 4095).max() <= 0.51, f"but are scaled to a PNG's: {said}")
np.save(bench.path("plain.npy"), numbers.reshape(96, 112).astype(np.uint16))
_, said = denoise(bits, bench.path("bits.npy"), "--sigma", "0.04", "--truth", bench.path("plain.npy"))
bench.check("compared by fractions: its samples end at 65535" in said, f"a truth with another maximum is named: {said}")

# --- few bits: the advice must not make the picture black ---------------------------------------------------------------

for few in (2, 4):
    packed = np.packbits(np.unpackbits(random.integers(0, 1 << few, (16, 16), np.uint8)[..., None], axis=-1)[..., 8 - few:].reshape(16, -1), axis=-1)
    fields = [(256, 16), (257, 16), (258, few), (259, 1), (262, 1), (273, 8), (277, 1), (278, 16), (279, packed.size)]
    directory = struct.pack("<H", len(fields)) + b"".join(struct.pack("<HHII", tag, 4 if tag in (273, 279) else 3, 1, value) for tag, value in fields)
    bench.path("few.tif").write_bytes(b"II*\0" + struct.pack("<I", 8 + packed.size) + packed.tobytes() + directory + bytes(4))
    run = bench.run("denoise", bench.path("few.tif"), bench.path("few.png"))
    bench.check_refused(run, 1, f"{few} bit", f"-scale 0 {(1 << few) - 1} 0 255")

# --- an animation ------------------------------------------------------------------------------------------------------

write_png(bench.path("frames.png"), to_integers(clean, np.uint8))
data = bench.path("frames.png").read_bytes()
bench.path("frames.png").write_bytes(data[:33] + png_chunk(b"acTL", struct.pack(">II", 3, 0)) + data[33:])
entry, said = denoise(bench.path("frames.png"), bench.path("frame.png"), "--sigma", "0.02")
bench.check("frames 2 to 3" in entry.get("lost", "") and "frames 2 to 3" in said, f"only the first frame of an animation is written: {entry}, {said}")

frame = "{}000000000000070000050000000000{}5650384c11000000{}"
frames = [frame.format("414e4d462a000000", "02", "2f0740010007508f7ad4a3ff8188e87f0000"), frame.format("414e4d462a000000", "00", "2f074001000750a31ad5a8ff8188e87f0000")]
bench.path("frames.webp").write_bytes(bytes.fromhex("524946468800000057454250565038580a00000002000000070000050000414e494d06000000000000000000") + b"".join(map(bytes.fromhex, frames)))
run = bench.run("denoise", bench.path("frames.webp"), bench.path("frame.png"), "--sigma", "0.02")
bench.check_refused(run, 1, "frames.webp", "is an animation", "webpmux")
bench.check("damaged" not in run.err, f"and is not called damaged: {run.err}")

# --- files that are damaged, which GDAL reads all the same ----------------------------------------------------------------

colours = np.stack([noisy, noisy, noisy])


def write_envi(path, interleave, lines, more=""):
    """The lines that the header says; the file has 96."""
    samples = np.rint(np.moveaxis(colours, 0, {"bsq": 0, "bil": 1, "bip": 2}[interleave]) * 255).astype(np.uint8).tobytes()
    path.with_suffix(".hdr").write_text(f"ENVI\nsamples = 112\nlines = {lines}\nbands = 3\nheader offset = 0\ndata type = 1\ninterleave = {interleave}\nbyte order = 0\n{more}")
    path.write_bytes(samples)
    return path


for interleave, lines in (("bsq", 97), ("bil", 97), ("bip", 110), ("bsq", 95)):
    source = write_envi(bench.path("raw.img"), interleave, lines)
    run = bench.run("denoise", source, bench.path("raw.png"), "--sigma", "0.03")
    bench.check_refused(run, 1, "raw.img", f"{lines} x 112 x 3", f"which are {lines * 112 * 3} bytes", f"the file has {96 * 112 * 3}")
    if lines > 96:
        bench.check_refused(bench.run("fill", source, bench.path("raw.tif"), "--band", "1", "--model", "random:diffusion"), 1, "raw.img", "the file has")
entry, said = denoise(write_envi(bench.path("raw.img"), "bip", 95), bench.path("raw.npy"), "--sigma", "0.03", "--strength", "0")
bench.check(np.array_equal(np.load(bench.path("raw.npy")), np.rint(noisy[:95, :, None] * 255).repeat(3, 2)), "bytes after the last pixel do no harm")
write_envi(bench.path("packed.img"), "bsq", 96, "file compression = 1\n").write_bytes(gzip.compress(bench.path("packed.img").read_bytes()))
denoise(bench.path("packed.img"), bench.path("plain.img"), "--sigma", "0.03")
entry, said = denoise(bench.path("plain.img"), bench.path("plain.npy"), "--sigma", "0.03")
bench.check(entry, f"the result of a compressed ENVI file is not compressed, and its header does not say so: {said}")

denoise(write_pnm(bench.path("whole.ppm"), np.rint(np.moveaxis(colours, 0, -1) * 255), 255), bench.path("whole.jpg"), "--strength", "0")
data = bytearray(bench.path("whole.jpg").read_bytes())
data[len(data) // 2:len(data) // 2 + 16] = b"\xff\0" * 8  # 64 ones: no code is that long
bench.path("damaged.jpg").write_bytes(data)
bench.check_refused(bench.run("denoise", bench.path("damaged.jpg"), bench.path("damaged.png"), "--sigma", "0.03"), 1, "damaged.jpg", "damaged near row", "of 96")

# --- folders of formats that are only read, and results that are empty ------------------------------------------------

folder, made = bench.path("folder"), bench.path("made")
folder.mkdir()
write_pnm(folder / "a.pgm", np.rint(noisy * 255), 255)
write_pnm(folder / "a.ppm", np.rint(np.stack([noisy] * 3, -1) * 4095), 4095)
write_png(folder / "a.png", to_integers(noisy, np.uint8))
(folder / "N45E006.hgt").write_bytes(np.rint(1000 + 500 * np.kron(noisy, np.ones((13, 11)))[:1201, :1201]).astype(">i2").tobytes())
run = bench.run("denoise", folder, made, "--memory", "300M", "--json", "-")
names = sorted(p.name for p in made.iterdir()) if made.exists() else []
bench.check(run.status == 0 and names == ["N45E006.hgt.tif", "a.pgm.png", "a.png", "a.ppm.png"], f"each has a result: {names}, {run}")
bench.check("3 file(s) have a format that is only read" in run.err, f"and a note says which: {run.err}")
(made / "a.png").write_bytes(b"")
run = bench.run("denoise", folder, made, "--memory", "300M", "--json", "-", "--skip-existing", "--quiet")
done = [entry["name"] for entry in run.record["denoise"]["files"] if not entry.get("skipped")]
bench.check(done == ["a.png"] and (made / "a.png").stat().st_size > 0, f"an empty file is no result: {done}")
run = bench.run("denoise", folder, made, "--memory", "300M", "--skip-existing")
bench.check(run.status == 0 and run.out.split() == "skipped 4 file(s) whose output is there".split(), f"with nothing to do no figures are printed: {run.out!r}")
(made / "a.png").unlink()
(made / "a.png").mkdir()
run = bench.run("denoise", folder, made, "--memory", "300M", "--json", "-", "--skip-existing", "--quiet")
failed = [entry["name"] for entry in run.record["denoise"]["files"] if entry.get("error")]
bench.check(run.status == 1 and failed == ["a.png"], f"nor is a folder, which is an error: {failed}, {run.err}")

bench.finish()
