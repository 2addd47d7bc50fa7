"""geotiff.py PROGRAM: the meaning of a raster's bands and its position are kept; pages, numbers out of range, a full disk and
unusual BMPs are refused with a message.

Files are written and parsed here byte by byte, without GDAL."""
import re
import resource
import signal
import struct
import sys

import numpy as np

from support import Bench, dncnn, leftovers, picture, skip, to_integers, write_png, write_safetensors
from tiff import write_tiff

H, W = 24, 31
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 12: 8}

def pages_file(path, pages, kinds):
    """A TIFF of gray bytes, one directory a page; `kinds`: (tag, value) of what each is, or None."""
    data = bytearray(b"II*\0\0\0\0\0")
    link = 4
    for page, kind in zip(pages, kinds):
        start = len(data)
        data += page.tobytes() + b"\0" * (page.size % 2)
        tags = {256: page.shape[1], 257: page.shape[0], 258: 8, 259: 1, 262: 1, 273: start, 277: 1, 278: page.shape[0], 279: page.size}
        tags.update([kind] if kind else [])
        data[link:link + 4] = struct.pack("<I", len(data))
        data += struct.pack("<H", len(tags))
        for tag in sorted(tags):
            data += struct.pack("<HHII", tag, 4, 1, tags[tag])
        link = len(data)
        data += bytes(4)
    path.write_bytes(data)
    return path


def tags_of(path):
    """Tags of the first directory of a little-endian TIFF, as bytes."""
    data = path.read_bytes()
    assert data[:4] == b"II*\0"
    at, tags = struct.unpack("<I", data[4:8])[0], {}
    for i in range(struct.unpack("<H", data[at:at + 2])[0]):
        tag, kind, count, value = struct.unpack("<HHI4s", data[at + 2 + 12 * i:at + 14 + 12 * i])
        size = SIZES.get(kind, 1) * count
        start = struct.unpack("<I", value)[0]
        tags[tag] = value[:size] if size <= 4 else data[start:start + size]
    return tags


def write_doubles(path, values, nodata=None):
    """An ENVI raster of one row."""
    values = np.asarray(values, np.float64).reshape(1, -1)
    path.write_bytes(values.tobytes())
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {values.shape[1]}\nlines = 1\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\ndata type = 5\n"
        "interleave = bsq\nbyte order = 0\n" + (f"data ignore value = {nodata}\n" if nodata else ""))


def check_pages(bench, model):
    image = to_integers(picture(H, W, 1), np.uint8)
    small = image[::2, ::2]
    out = bench.path("out.tif")
    three = pages_file(bench.path("three.tif"), [image] * 3, [None] * 3)
    bench.check_refused(bench.run("denoise", three, out, "--model", model), 1, "three.tif", "3 pages", "split", ".npy")
    bench.check(not out.exists(), "and nothing is written")
    one = pages_file(bench.path("one.tif"), [image, small, image, small],
                     [None, (254, 1), (254, 4), (255, 2)])  # overview, mask, overview by the older tag
    bench.check(bench.record("denoise", one, out, "--model", model) is not None, "an image with overviews and a mask is one page")
    write_png(bench.path("in.png"), image)
    bench.check_refused(bench.run("denoise", bench.path("in.png"), out, "--model", model, "--truth", three), 1, "three.tif", "3 pages")
    stack = np.stack([image] * 10)
    described = lambda text: {270: (2, text.encode() + b"\0")}
    imagej = described("ImageJ=1.53t\nimages=10\nslices=10\nloop=false\n")
    for name, tags in (("imagej.tif", imagej), ("metamorph.tif", {33629: (5, bytes(80))})):
        source = write_tiff(bench.path(name), image, tags=tags)
        source.write_bytes(source.read_bytes() + stack[1:].tobytes())
        bench.check_refused(bench.run("denoise", source, out, "--model", model), 1, name, "10 slices", ".npy")
    for name, tags in (("taken.tif", imagej), ("single.tif", described("ImageJ=1.53t\nimages=1\n")), ("text.tif", described("images=10"))):
        bench.check(bench.record("denoise", write_tiff(bench.path(name), image, tags=tags), out, "--model", model) is not None, f"{name}: one image is read")
    circle = bytearray(three.read_bytes())
    circle[-4:] = circle[4:8]
    bench.path("circle.tif").write_bytes(circle)
    bench.check_refused(bench.run("denoise", bench.path("circle.tif"), out, "--model", model), 1, "circle.tif", "without end")


def geotiff(path, image):
    """Int16 with what GDAL says about bands, five control points and UTM zone 32N, by the tags of the format."""
    items = ('<GDALMetadata><Item name="OFFSET" sample="0" role="offset">273.15</Item><Item name="SCALE" sample="0" role="scale">0.01</Item>'
             '<Item name="UNITTYPE" sample="0" role="unittype">Kelvin</Item></GDALMetadata>\0').encode()
    points = [(x, y, 0, 500000 + 30 * x + 2 * y, 5000000 - 30 * y, 0) for x, y in ((0, 0), (W, 0), (0, H), (W, H), (W / 2, H / 4))]
    keys = struct.pack("<16H", 1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632)
    values = {256: (4, struct.pack("<I", W)), 257: (4, struct.pack("<I", H)), 258: (3, struct.pack("<H", 16)), 259: (3, struct.pack("<H", 1)),
              262: (3, struct.pack("<H", 1)), 273: (4, struct.pack("<I", 8)), 277: (3, struct.pack("<H", 1)), 278: (4, struct.pack("<I", H)),
              279: (4, struct.pack("<I", image.nbytes)), 339: (3, struct.pack("<H", 2)), 33922: (12, np.array(points, np.float64).tobytes()),
              34735: (3, keys), 42112: (2, items), 42113: (2, b"-9999\0")}
    data, entries = bytearray(b"II*\0\0\0\0\0" + image.tobytes()), b""
    for tag, (kind, value) in sorted(values.items()):
        count, field = len(value) // SIZES[kind], value.ljust(4, b"\0")
        if len(value) > 4:
            data += b"\0" * (-len(data) % 8)
            field = struct.pack("<I", len(data))
            data += value
        entries += struct.pack("<HHI", tag, kind, count) + field
    data += b"\0" * (-len(data) % 8)
    data[4:8] = struct.pack("<I", len(data))
    path.write_bytes(data + struct.pack("<H", len(values)) + entries + bytes(4))
    return points


def check_bands(bench, model):
    image = to_integers(picture(H, W, 1), np.uint8).reshape(H, W).astype(np.int16) * 40
    points = geotiff(bench.path("geo.tif"), image)
    target = bench.path("geo-out.tif")
    if bench.record("denoise", bench.path("geo.tif"), target, "--model", model) is None:
        return
    tags = tags_of(target)
    items = dict(re.findall(rb'<Item name="(\w+)" sample="0"[^>]*>([^<]*)<', tags.get(42112, b"")))
    bench.check(float(items.get(b"SCALE", 0)) == 0.01 and float(items.get(b"OFFSET", 0)) == 273.15, f"scale and offset: {items}")
    bench.check(items.get(b"UNITTYPE") == b"Kelvin", "unit of the band")
    bench.check(tags.get(42113, b"").strip(b"\0 ") == b"-9999", "nodata value")
    found = np.frombuffer(tags.get(33922, b""), np.float64)
    bench.check(np.array_equal(found, np.ravel(points)), f"five control points: {found}")
    bench.check(struct.pack("<H", 32632) in tags.get(34735, b""), "and their projection")
    bench.path("class.img").write_bytes(image.tobytes())
    bench.path("class.hdr").write_text(f"ENVI\nsamples = {W}\nlines = {H}\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
                                       "data type = 2\ninterleave = bsq\nbyte order = 0\nclasses = 2\nclass names = {land, water}\n")
    bench.record("denoise", bench.path("class.img"), bench.path("class-out.img"), "--model", model)
    header = bench.path("class-out.hdr")
    text = header.read_text() if header.exists() else ""
    bench.check("land" in text and "water" in text, f"names of categories go from ENVI to ENVI: {text!r}")


def check_range(bench, model):
    out = bench.path("range.npy")
    values = np.full((H, W), 0.5)
    values[3, 4] = 1e39
    for name, array in (("far.npy", values), ("swapped.npy", values.astype(">f8")), ("planes.npy", np.stack([values] * 3))):
        np.save(bench.path(name), array)
        axes = ["--axes", "CHW"] if array.ndim == 3 else []
        bench.check_refused(bench.run("denoise", bench.path(name), out, "--model", model[array.ndim == 3], *axes), 1, name, "3.4e38", "scale")
        bench.check(not out.exists(), "and nothing is written")
    values[3, 4], values[5, 6] = np.inf, np.nan
    np.save(bench.path("holes.npy"), values)
    bench.check(bench.record("denoise", bench.path("holes.npy"), out, "--model", model[0]) is not None, "infinity and NaN are holes as before")
    row, large = np.full(600, 0.5), 1.7976931348623157e308
    for name, far, nodata, refused in (("d.img", 1e39, None, True), ("e.img", -large, repr(-large), False), ("f.img", large, repr(-large), True),
                                       ("g.img", np.inf, None, False), ("h.img", 0.9, None, False)):
        row[500] = far
        write_doubles(bench.path(name), row, nodata)
        result = bench.run("denoise", bench.path(name), bench.path("range.tif"), "--model", model[0])
        if refused:
            bench.check_refused(result, 1, name, "3.4e38", "scale")
        else:
            bench.check(result.status == 0, f"a double of {far} with nodata {nodata} is read: {result}")


def check_full_disk(bench, model):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    write_png(bench.path("wide.png"), to_integers(picture(200, 300, 1), np.uint8))
    for name in ("full.tif", "full.jpg", "full.img", "full.bmp"):
        result = bench.run("denoise", bench.path("wide.png"), bench.path(name), "--model", model, preexec_fn=small_files)
        bench.check_refused(result, 1, name, "cannot be written", "is the disk full?")
        bench.check(not bench.path(name).exists(), "and nothing is left under the name")


def check_density(bench, model):
    """Resolution without a unit, from JFIF or from EXIF data alone, goes into a TIFF."""
    write_png(bench.path("d.png"), to_integers(picture(H, W, 1), np.uint8))
    bench.record("denoise", bench.path("d.png"), bench.path("d.jpg"), "--model", model)
    data = bench.path("d.jpg").read_bytes()
    at = 2
    while data[at + 1] == 0xe0:
        at += 2 + struct.unpack(">H", data[at + 2:at + 4])[0]

    def segment(marker, body):
        return struct.pack(">BBH", 0xff, marker, len(body) + 2) + body

    def jfif(unit, x, y):
        return segment(0xe0, b"JFIF\0\1\1" + struct.pack(">BHHBB", unit, x, y, 0, 0))

    def exif(unit, x, y):
        entries = struct.pack("<H", 3) + struct.pack("<HHII", 282, 5, 1, 50) + struct.pack("<HHII", 283, 5, 1, 58)
        entries += struct.pack("<HHIHH", 296, 3, 1, unit, 0) + struct.pack("<I", 0)
        return segment(0xe1, b"Exif\0\0II*\0\x08\0\0\0" + entries + struct.pack("<4I", x, 1, y, 1))

    for head, wanted in ((jfif(0, 72, 72), (72, 72, 1)), (jfif(0, 1, 2), (1, 2, 1)), (exif(1, 72, 72), (72, 72, 1)), (exif(2, 300, 150), (300, 150, 2)),
                         (jfif(0, 1, 1) + exif(3, 50, 60), (50, 60, 3)), (jfif(1, 96, 96) + exif(1, 72, 72), (96, 96, 2)), (jfif(0, 1, 1), None)):
        bench.path("e.jpg").write_bytes(data[:2] + head + data[at:])
        bench.record("denoise", bench.path("e.jpg"), bench.path("e.tif"), "--model", model)
        tags = tags_of(bench.path("e.tif"))
        found = None
        if 282 in tags:
            x, y = (struct.unpack("<II", tags[tag]) for tag in (282, 283))
            found = (x[0] / x[1], y[0] / y[1], tags[296][0])
        bench.check(found == wanted, f"resolution {found}, not {wanted}")


def check_bmp(bench, model):
    pixels = bytes(24 * 16)
    header = struct.pack("<IiiHHII", 124, 8, 16, 1, 24, 0, len(pixels)).ljust(124, b"\0")
    bench.path("v5.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 138 + len(pixels), 0, 0, 138) + header + pixels)
    result = bench.run("denoise", bench.path("v5.bmp"), bench.path("bmp.png"), "--model", model)
    if result.status != 0:  # newer versions of GDAL read it
        bench.check_refused(result, 1, "v5.bmp", "124", "convert", "PNG")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("GDAL is not there")
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=16))
    color = write_safetensors(bench.path("color.safetensors"), dncnn(3, depth=3, width=16))
    check_pages(bench, gray)
    check_bands(bench, gray)
    check_range(bench, (gray, color))
    check_full_disk(bench, gray)
    check_density(bench, gray)
    check_bmp(bench, color)
    bench.check(not leftovers(bench.folder), "no temporary file is left")
    bench.finish()


main()
