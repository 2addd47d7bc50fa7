"""png_sides.py PROGRAM: what GDAL programs keep beside a PNG: nodata value, scale and offset, mask; and cICP inside it.

Files are written and parsed byte by byte, without GDAL's programs."""
import re
import struct
import sys

import numpy as np

from support import Bench, draw, picture, png_chunk, skip, to_integers, write_png
from tiff import ITEMS, NODATA, tags_of, write_tiff

H, W = 72, 96
bench = Bench(sys.argv[1])
if not bench.has_gdal():
    skip("GDAL is not there")


def entry_of(source, target, *options):
    record = bench.record("denoise", source, target, "--sigma", "0.1", *options)
    return record["denoise"]["files"][0] if record else {}


def samples_of(path, dtype, bands):
    start = struct.unpack("<I", tags_of(path)[273][:4])[0]
    return np.frombuffer(path.read_bytes(), np.dtype(dtype).newbyteorder("<"), H * W * bands, start).reshape(H, W, bands)


def describe(path, *bands):
    """Writes NAME.aux.xml with these elements of each band."""
    text = "".join(f'<PAMRasterBand band="{i + 1}">{band}</PAMRasterBand>' for i, band in enumerate(bands))
    path.with_name(path.name + ".aux.xml").write_text(f"<PAMDataset>{text}</PAMDataset>")


def meaning_of(path):
    return re.findall(r'role="(scale|offset)">([^<]*)<', tags_of(path).get(ITEMS, b"").rstrip(b"\0").decode())


image = picture(H, W, 1)
for dtype in (np.uint8, np.uint16):
    samples = np.maximum(to_integers(np.clip(image + 0.1 * draw(3, image.shape), 0, 1), dtype), 1)
    samples[:20] = 0
    samples = samples.reshape(H, W)
    source, same = bench.path("q.png"), bench.path("q.tif")
    write_png(source, samples)
    write_tiff(same, samples, nodata="0")
    describe(source, "<NoDataValue>0</NoDataValue><Offset>7</Offset><Scale>0.5</Scale>")
    for target in ("o.tif", "o.png"):
        entry = entry_of(source, bench.path(target))
        bench.check(entry.get("holes") == 20 * W, f"{dtype.__name__}: the nodata value beside a PNG makes holes: {entry}")
    bench.check(entry.get("lost") == "nodata value, scale and offset", f"a PNG has no place for it: {entry.get('lost')}")
    tags = tags_of(bench.path("o.tif"))
    bench.check(tags.get(NODATA, b"").rstrip(b"\0 ") == b"0" and meaning_of(bench.path("o.tif")) in ([("offset", "7"), ("scale", "0.5")], [("scale", "0.5"), ("offset", "7")]),
                f"a TIFF has: {tags.get(NODATA)}, {meaning_of(bench.path('o.tif'))}")
    entry_of(same, bench.path("same.tif"))
    made = samples_of(bench.path("o.tif"), dtype, 1)
    bench.check(np.array_equal(made, samples_of(bench.path("same.tif"), dtype, 1)), "and the samples that come from a TIFF")
    bench.check(np.array_equal(made[..., 0] == 0, samples == 0), "no other sample is void")

truth = bench.record("denoise", bench.path("q.tif"), bench.path("o.tif"), "--sigma", "0.1", "--truth", bench.path("q.png"))
bench.check(truth and truth["quality"]["psnr_db"] < 60, "a truth's holes are left out")

# --- scales -------------------------------------------------------------------------------------------------------------

color = to_integers(picture(H, W, 3), np.uint8)
write_png(bench.path("s.png"), color)
write_tiff(bench.path("s.tif"), color, 2)
for name in ("s.png", "s.tif"):
    describe(bench.path(name), *["<Scale>2</Scale>"] * 3)
    entry = entry_of(bench.path(name), bench.path("o.tif"))
    bench.check("lost" not in entry and [m for m in meaning_of(bench.path("o.tif")) if m != ("offset", "0")] == [("scale", "2")] * 3, f"{name}: a scale of all bands: {meaning_of(bench.path('o.tif'))}")
    describe(bench.path(name), "<Scale>2</Scale>", "<Scale>3</Scale>", "")
    entry = entry_of(bench.path(name), bench.path("o.tif"))
    bench.check("aux.xml" in entry.get("lost", "") and not meaning_of(bench.path("o.tif")), f"{name}: scales that differ are lost, and named: {entry.get('lost')}")

# --- masks --------------------------------------------------------------------------------------------------------------

mask = np.full((H, W), 255, np.uint8)
mask[:, :30] = 0
mask[40, 50] = 0
source = bench.path("m.png")
write_png(source, color)
write_tiff(bench.path("m.png.msk"), mask)
write_tiff(bench.path("m.tif"), color, 2, mask=mask)
for options in ((), ("--tile", "32", "--halo", "exact")):
    entry = entry_of(source, bench.path("o.tif"), *options)
    bench.check(entry.get("holes") == 3 * (mask == 0).sum() and "lost" not in entry, f"a mask beside a PNG makes holes: {entry}")
    entry_of(bench.path("m.tif"), bench.path("same.tif"), *options)
    bench.check(np.array_equal(samples_of(bench.path("o.tif"), np.uint8, 3), samples_of(bench.path("same.tif"), np.uint8, 3)), "and the samples that come from a TIFF")
again = entry_of(bench.path("o.tif"), bench.path("again.tif"))
bench.check(again.get("holes") == entry.get("holes"), f"the result has the mask: {again}")
bench.check(entry_of(source, bench.path("o.png")).get("lost") == "mask", "a PNG has no place for it")
record = bench.record("denoise", source, bench.path("o.tif"), "--sigma", "0.1")
bench.check(record and record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"planned {record['plan']['peak_bytes']} = counted {record['measured']['peak_bytes']}")
packed = np.packbits(mask > 0, axis=1)
write_tiff(bench.path("m.png.msk"), packed, tags={256: (3, struct.pack("<H", W)), 258: (3, struct.pack("<H", 1))})
entry = entry_of(source, bench.path("o.tif"))
bench.check(entry.get("holes") == 3 * (mask == 0).sum(), f"a mask of one bit: {entry}")
write_tiff(bench.path("m.png.msk"), np.stack([mask, 255 - mask, np.full_like(mask, 255)], -1), 1, (0, 0))
entry = entry_of(source, bench.path("o.tif"))
bench.check(entry.get("holes") == H * W, f"a mask of each channel: {entry}")
write_tiff(bench.path("m.png.msk"), mask[:-1])
bench.check_refused(bench.run("denoise", source, bench.path("o.tif"), "--sigma", "0.1"), 1, "m.png", "mask", "71 x 96")
bench.path("m.png.msk").write_text("nothing")
bench.check_refused(bench.run("denoise", source, bench.path("o.tif"), "--sigma", "0.1"), 1, "m.png", "mask")

# --- colour space by numbers --------------------------------------------------------------------------------------------

write_png(bench.path("hdr.png"), color)
data = bench.path("hdr.png").read_bytes()
at = data.index(b"IDAT") - 4
codes = png_chunk(b"cICP", bytes([9, 16, 0, 1]))
bench.path("hdr.png").write_bytes(data[:at] + codes + data[at:])
entry = entry_of(bench.path("hdr.png"), bench.path("o.png"))
made = bench.path("o.png").read_bytes()
bench.check(codes in made and made.index(codes) < made.index(b"IDAT") and "lost" not in entry, "cICP goes from PNG to PNG")
bench.check("cICP" in entry_of(bench.path("hdr.png"), bench.path("o.tif")).get("lost", ""), "and is named as lost elsewhere")
bench.finish()
