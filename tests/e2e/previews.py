"""previews.py PROGRAM: a TIFF whose first page is a preview of a picture elsewhere in the file (camera raw) is refused.

Files are written here byte by byte, after the structure of DNG and NEF."""
import json
import struct
import sys

import numpy as np

from support import DATA, Bench, dncnn, leftovers, picture, read_safetensors, skip, to_integers, write_pth, write_safetensors

CFA, DNG = 32803, {50706: 4 << 8 | 1}
IMAGE = to_integers(picture(40, 52, 1), np.uint8)
SMALL, MIDDLE = IMAGE[::4, ::4], IMAGE[::2, ::2]


def write_pages(path, pages, below=(), order="<", wide=False):
    """Gray pages, each an image and its other tags; the first one's tag SubIFDs names `below`."""
    offset, room = ("Q", 8) if wide else ("I", 4)
    data = bytearray((b"II" if order == "<" else b"MM") + (struct.pack(order + "HHHQ", 43, 8, 0, 0) if wide else struct.pack(order + "HI", 42, 0)))

    def directory(image, more):
        data.extend(bytes(-len(data) % 8))
        start = len(data)
        data.extend(np.ascontiguousarray(image).tobytes())
        tags = {256: image.shape[1], 257: image.shape[0], 258: 8, 259: 1, 262: 1, 273: start, 277: 1, 278: image.shape[0], 279: image.size, **more}
        data.extend(bytes(-len(data) % 8))
        lists = {tag: len(data) for tag, value in tags.items() if isinstance(value, list)}
        for tag in lists:
            lists[tag] = len(data)
            data.extend(b"".join(struct.pack(order + offset, value) for value in tags[tag]))
        place = len(data)
        data.extend(struct.pack(order + ("Q" if wide else "H"), len(tags)))
        for tag in sorted(tags):
            value, count = tags[tag], 1
            if isinstance(value, list):
                value, count = (lists[tag], len(value)) if len(value) > 1 else (value[0], 1)
                head = struct.pack(order + "HH" + offset, tag, 16 if wide else 4, count)
                data.extend(head + struct.pack(order + offset, value))
            else:
                data.extend(struct.pack(order + "HH" + offset, tag, 4, 1) + struct.pack(order + "I", value).ljust(room, b"\0"))
        data.extend(bytes(room))
        return place, len(data) - room

    places = [directory(image, more)[0] for image, more in below]
    link = 8 if wide else 4
    for image, more in pages:
        place, following = directory(image, {**more, **({330: places} if places else {})})
        data[link:link + room] = struct.pack(order + offset, place)
        link, places = following, []
    path.write_bytes(data)
    return path


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("built without GDAL")
    model = write_safetensors(bench.path("net.safetensors"), dncnn(1, depth=3, width=16))
    out = bench.path("out.npy")
    raw, preview, reduced = (IMAGE, {254: 0, 262: CFA}), (SMALL, {254: 1}), (MIDDLE, {254: 1})
    said = ("preview of 13x10", "picture itself of 52x40")
    refused = {
        "x.dng": (dict(pages=[(SMALL, {254: 1, **DNG})], below=[raw]), ("16-bit TIFF", "dcraw")),
        "x.nef": (dict(pages=[preview], below=[reduced, raw]), ("16-bit TIFF", "dcraw")),
        "motorola.nef": (dict(pages=[preview], below=[reduced, raw], order=">"), ("16-bit TIFF",)),
        "wide.tif": (dict(pages=[preview], below=[reduced, raw], wide=True), ("16-bit TIFF",)),
        "unmarked.tif": (dict(pages=[(SMALL, {})], below=[(IMAGE, {})]), ("gdal_translate GTIFF_DIR:off:",)),
        "chained.tif": (dict(pages=[preview, (IMAGE, {})]), ("gdal_translate GTIFF_DIR:2:",)),
        "old.tif": (dict(pages=[(SMALL, {255: 2}), reduced, (IMAGE, {})]), ("gdal_translate GTIFF_DIR:3:",))}
    for name, (parts, words) in refused.items():
        path = write_pages(bench.path(name), **parts)
        result = bench.run("denoise", path, out, "--model", model)
        bench.check_refused(result, 1, name, *said, *words)
        bench.check(not out.exists(), f"{name}: nothing is written")
    for verb in (("detect",), ("plan", "denoise", "--model", model)):
        bench.check_refused(bench.run(*verb[:2 if verb[0] == "plan" else 1], bench.path("x.dng"), bench.path("out.tif"), *verb[2:]), 1, "x.dng", *said)
    np.save(bench.path("kernel.npy"), np.full((3, 3), 1 / 9, np.float32))
    bench.path("problem.json").write_text(json.dumps({"operator": "blur", "kernels": ["kernel.npy"], "measurement": "x.dng"}))
    bench.check_refused(bench.run("reconstruct", out, "--problem", bench.path("problem.json")), 1, "x.dng", *said)
    dump = read_safetensors(DATA / "networks" / "diffusion.safetensors")
    first = "denoise_fn.input_blocks.0.0.weight"
    dump = {k: v for k, v in dump.items() if k.startswith("denoise_fn.")} | {first: np.repeat(dump[first], 2, 1)[:, :2]}
    write_pth(bench.path("diffusion.pth"), dump)
    bench.check_refused(bench.run("fill", bench.path("x.dng"), bench.path("out.tif"), "--model", bench.path("diffusion.pth"), "--nodata", 0), 1, "x.dng", *said)
    several = write_pages(bench.path("several.tif"), [preview, (IMAGE, {}), (IMAGE, {})])
    bench.check_refused(bench.run("denoise", several, out, "--model", model), 1, "2 pages", "GTIFF_DIR:2:")
    read = {
        "pyramid.tif": dict(pages=[(IMAGE, {}), reduced, preview]),
        "ome.tif": dict(pages=[(IMAGE, {})], below=[reduced, preview]),
        "masked.tif": dict(pages=[(IMAGE, {}), (IMAGE, {254: 4, 262: 4}), reduced, (MIDDLE, {254: 5, 262: 4})]),
        "alone.tif": dict(pages=[(IMAGE, {254: 1})]),
        "smaller.tif": dict(pages=[(IMAGE, {254: 1}), reduced], below=[preview])}
    for name, parts in read.items():
        out.unlink(missing_ok=True)
        good = bench.record("denoise", write_pages(bench.path(name), **parts), out, "--model", model) is not None
        bench.check(good and np.load(out).shape[:2] == IMAGE.shape, f"{name}: the picture comes first, and is read")
    # Subdirectories that lie nowhere, are endless or too many; the first page is read as before.
    plain = bench.path("ome.tif").read_bytes()
    at = plain.rindex(struct.pack("<HHI", 330, 4, 2))
    for count, place in ((2, 0xfffffff0), (0xffffffff, 8), (1, 0), (1, len(plain) - 1), (70000, len(plain) - 6)):
        path = bench.path("hostile.tif")
        path.write_bytes(plain[:at + 4] + struct.pack("<II", count, place) + plain[at + 12:])
        result = bench.run("denoise", path, out, "--model", model)
        bench.check(result.status in (0, 1), f"{count} subdirectories at {place}: status {result.status}")
    bench.check(not leftovers(bench.folder), "no temporary file is left")
    bench.finish()


main()
