"""side_files.py PROGRAM: side files of a raster, pipes in place of files, and limits on files and descriptors.

A record never replaces a side file; side files are removed if the file they describe is replaced, and may give a nodata
value. Pipes are refused at once. No temporary file is left if a file may not grow or no descriptor is free.
"""
import json
import os
import resource
import shutil
import struct
import sys

import numpy as np

import tiff
from support import Bench, dncnn, leftovers, picture, skip, to_integers, write_png, write_safetensors

SOON = 120  # a run that waits for ever is ended, with status -9
NODATA = 42113  # the tag
PAM = ('<PAMDataset>\n  <PAMRasterBand band="1">\n    <NoDataValue le_hex_equiv="0000000000000000">{}</NoDataValue>\n'
       '  </PAMRasterBand>\n</PAMDataset>\n')


def write_tiff(path, image):
    """One band of uint8, uint16 or float32 in one strip."""
    height, width = image.shape
    bits, kind = 8 * image.dtype.itemsize, 3 if image.dtype.kind == "f" else 1
    tags = [(256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, 1), (262, 3, 1), (273, 4, 0), (277, 3, 1),
            (278, 4, height), (279, 4, image.nbytes), (339, 3, kind)]
    start = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(struct.pack("<HHII", tag, size, 1, start if tag == 273 else value) for tag, size, value in tags)
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + image.tobytes())


def nodata_of(path):
    """The text of GDAL's nodata tag; None without one."""
    data = path.read_bytes()
    at = struct.unpack("<I", data[4:8])[0]
    for i in range(struct.unpack("<H", data[at:at + 2])[0]):
        tag, _, count, value = struct.unpack("<HHII", data[at + 2 + 12 * i:at + 14 + 12 * i])
        if tag == NODATA:
            where = at + 10 + 12 * i if count <= 4 else value
            return data[where:where + count].rstrip(b"\0").decode()
    return None


def denoise(bench, source, target, *more, **how):
    return bench.run("denoise", source, target, "--model", bench.path("gray.safetensors"), "--quiet", *more,
                     timeout=SOON, **how)


def check_records(bench):
    folder = bench.path("records")
    folder.mkdir()
    write_tiff(folder / "a.tif", to_integers(picture(24, 31, 1), np.uint8))
    write_png(folder / "p.png", to_integers(picture(24, 31, 1), np.uint8))
    names = ["a.tif.msk", "a.tif.aux.xml", "a.tif.ovr", "a.tfw", "a.TFW", "a.tifw", "a.wld", "b.tif.msk", "b.tif.aux.xml",
             "b.tif.ovr", "b.tfw"]
    for name in names:
        result = denoise(bench, folder / "a.tif", folder / "b.tif", "--json", folder / name)
        bench.check_refused(result, 2, "--json", "is a file of this job")
    for source, name in (("p.png", "p.pgw"), ("p.png", "q.jgw"), ("p.png", "p.png.aux.xml")):
        result = denoise(bench, folder / source, folder / "q.jpg", "--json", folder / name)
        bench.check_refused(result, 2, "--json", "is a file of this job")
    (folder / "link.json").symlink_to("a.tif.msk")
    bench.check_refused(denoise(bench, folder / "a.tif", folder / "b.tif", "--json", folder / "link.json"), 2,
                        "is a file of this job")
    for name in ("a.tif.json", "a.json", "a.tif.msk.json"):
        result = denoise(bench, folder / "a.tif", folder / "b.tif", "--json", folder / name)
        bench.check(result.status == 0 and json.loads((folder / name).read_text()), f"{name} is a record: {result}")
    for name in ("a.tif.msk", "a.tif.aux.xml", "a.tfw"):
        (folder / name).unlink(missing_ok=True)
        result = denoise(bench, folder / "p.png", folder / name)
        bench.check(result.status == 2 and not (folder / name).exists(), f"no result in a side file's name: {result}")


def check_stale(bench):
    folder = bench.path("stale")
    folder.mkdir()
    image = to_integers(picture(24, 31, 1), np.uint8)
    write_tiff(folder / "a.tif", image)
    for target in ("st.tif", "st.png"):
        (folder / target).write_bytes(b"old")
        for end in (".ovr", ".aux.xml", ".msk"):
            (folder / (target + end)).write_text("old")
    worlds = ("st.tfw", "st.TFW", "st.tifw", "st.pgw", "st.wld")
    for name in worlds:
        (folder / name).write_text("1\n0\n0\n-1\n5\n6\n")
    for target in ("st.tif", "st.png"):
        result = denoise(bench, folder / "a.tif", folder / target)
        left = [p.name for p in folder.glob(target + ".*")]
        bench.check(result.status == 0 and not left, f"what described a replaced {target} is gone: {left}, {result}")
    left = [name for name in worlds if (folder / name).exists()]
    bench.check(left == ["st.wld"], f"so are world files, except one that may be another image's: {left}")
    tiff.write_tiff(folder / "there.tif", image, position=True)
    for target, side in (("there.png", "there.pgw"), ("placed.tif", "placed.tfw")):
        (folder / side).write_text("1\n0\n0\n-1\n5\n6\n")
        result = denoise(bench, folder / "there.tif", folder / target)
        bench.check(result.status == 0 and (folder / side).exists(), f"beside a result with a position they stay or are replaced: {result}")
    result = denoise(bench, folder / "a.tif", folder / "there.png")
    bench.check(result.status == 0 and not (folder / "there.pgw").exists(), "and go when one without a position follows")

    (folder / "elsewhere").write_text("mine")
    for end in (".aux.xml", ".ovr"):
        (folder / ("st.tif" + end)).unlink(missing_ok=True)
    (folder / "st.tif.aux.xml").symlink_to("elsewhere")
    (folder / "st.tif.ovr").mkdir()
    result = denoise(bench, folder / "a.tif", folder / "st.tif")
    bench.check(result.status == 0 and (folder / "st.tif.aux.xml").is_symlink() and (folder / "st.tif.ovr").is_dir(),
                f"links and folders stay: {result}")

    (folder / "a.tif.aux.xml").write_text(PAM.format(7))
    (folder / "a.tif.ovr").write_text("old")
    result = denoise(bench, folder / "a.tif", folder / "a.tif", "--overwrite")
    bench.check(result.status == 0 and (folder / "a.tif.aux.xml").exists() and not (folder / "a.tif.ovr").exists(),
                f"an image that is replaced by its own result keeps its description, not its overviews: {result}")

    write_tiff(folder / "x.tif.msk", image)
    result = denoise(bench, folder / "x.tif.msk", folder / "x.tif")
    bench.check((folder / "x.tif.msk").exists(), f"an input is never removed as a side file: {result}")
    result = denoise(bench, folder / "a.tif", folder / "x.tif", "--truth", folder / "x.tif.msk")
    bench.check((folder / "x.tif.msk").exists(), f"nor is a truth: {result}")


def check_nodata(bench):
    folder = bench.path("nodata")
    folder.mkdir()
    image = to_integers(picture(24, 31, 1), np.uint16)
    image[5:9, 3:12] = 7
    write_tiff(folder / "a.tif", image)
    nan = picture(24, 31, 1)
    nan[5:9, 3:12] = np.nan
    write_tiff(folder / "n.tif", nan)
    (folder / "n.tif.aux.xml").write_text(PAM.format("nan"))

    def run(name, text, source="a.tif"):
        if text is not None:
            (folder / "a.tif.aux.xml").write_text(text)
        result = denoise(bench, folder / source, folder / "out.tif", "--json", folder / "out.json")
        if not bench.check(result.status == 0, f"{name}: runs: {result}"):
            return None
        return json.loads((folder / "out.json").read_text())["denoise"]["files"][0].get("holes", 0), nodata_of(folder / "out.tif")

    before = run("no side file", None)
    bench.check(before == (0, None), f"without a side file nothing is void: {before}")
    found = run("side file", PAM.format(7))
    bench.check(found == (36, "7"), f"the side file's nodata value counts, and goes into the result: {found}")
    found = run("a float's", None, "n.tif")
    bench.check(found == (36, "nan"), f"nan marks void samples too: {found}")
    other = PAM.replace('band="1"', 'band="2"').format(7)
    nested = "<PAMDataset><Subdataset name='x'>" + PAM.format(7) + "</Subdataset></PAMDataset>"
    comment = "<PAMDataset><!-- " + PAM.format(7) + " --></PAMDataset>"
    for name, text in (("another band's", other), ("a subdataset's", nested), ("a comment's", comment),
                       ("no number", PAM.format("7 or so")), ("beyond its type", PAM.format(-9999)), ("cut", PAM[:60]),
                       ("large", PAM.format(7) + " " * (1 << 20)), ("empty", ""), ("only open", "<" * 5000)):
        found = run(name, text)
        bench.check(found == (0, None), f"{name} nodata value is none of this image: {found}")


def check_pipes(bench):
    folder = bench.path("pipes")
    folder.mkdir()
    pipe = folder / "pipe.json"
    os.mkfifo(pipe)
    write_png(folder / "a.png", to_integers(picture(24, 31, 1), np.uint8))
    model = ("--model", bench.path("gray.safetensors"), "--quiet")
    np.save(folder / "y.npy", np.zeros((4, 16), np.float32))
    for name, problem in (("angles", {"angles": "pipe.json", "measurement": "y.npy"}),
                          ("measurement", {"angles": [0, 45, 90, 135], "measurement": "pipe.json"})):
        (folder / f"{name}.json").write_text(json.dumps({"operator": "radon", **problem}))
        result = bench.run("reconstruct", folder / "x.npy", "--problem", folder / f"{name}.json", *model, timeout=SOON)
        bench.check_refused(result, 1, "pipe", "regular file")
    result = bench.run("reconstruct", folder / "x.npy", "--problem", pipe, *model, timeout=SOON)
    bench.check_refused(result, 1, "pipe", "regular file")
    result = denoise(bench, folder / "a.png", folder / "b.png", "--json", pipe)
    bench.check_refused(result, 1, "--json", "pipe", "no program reads")
    bench.check(not (folder / "b.png").exists(), "a record that nobody reads is refused before the work")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    result = denoise(bench, folder / "a.png", folder / "b.png", "--json", pipe)
    text = os.read(reader, 1 << 20)
    os.close(reader)
    bench.check(result.status == 0 and json.loads(text), f"a pipe with a reader takes the record: {result}")


def check_limits(bench):
    folder = bench.path("limits")
    folder.mkdir()
    write_tiff(folder / "a.tif", to_integers(picture(200, 300, 1), np.uint8))

    def limited(target, which, most):
        return denoise(bench, folder / "a.tif", folder / target, preexec_fn=lambda: resource.setrlimit(which, (most, most)))

    for target in ("b.tif", "b.npy", "b.jpg", "b.bsq"):
        result = limited(target, resource.RLIMIT_FSIZE, 1024)
        own = [line for line in result.lines if line.startswith("tessera: ")]  # some versions of libtiff print lines of their own
        bench.check(result.status == 1 and len(own) == 1, f"a file that may not grow is an error: {result}")
        bench.check(not leftovers(folder), f"{target}: nothing temporary is left: {leftovers(folder)}")
    for most in range(4, 9):
        for target in ("c.tif", "c.jpg", "c.bsq", "c.npy"):
            for left in leftovers(folder):
                shutil.rmtree(folder / left)
            result = limited(target, resource.RLIMIT_NOFILE, most)
            bench.check("free memory" not in result.err and not leftovers(folder),
                        f"{most} descriptors, {target}: {leftovers(folder)}, {result}")


def check_satellite(bench):
    """Facts of a satellite's scene in a file beside it are not carried, and not promised."""
    image = (100 + 50 * np.sin(np.arange(40 * 48).reshape(40, 48) / 30)).astype(np.uint8)
    source = bench.path("scene.tif")
    write_tiff(source, image)
    bench.path("scene.IMD").write_text('version = "28.4";\nBEGIN_GROUP = IMAGE_1\n\tsatId = "WV02";\n\tcloudCover = 0.012;\n'
                                       "\tfirstLineTime = 2020-05-06T10:11:12.000000Z;\nEND_GROUP = IMAGE_1\nEND;\n")
    for suffix in (".tif", ".png"):
        target = bench.path(f"scene-out{suffix}")
        result = bench.run("denoise", source, target, "--sigma", "0.02", "--json", "-")
        lost = result.record["denoise"]["files"][0].get("lost", "") if result.status == 0 else str(result)
        bench.check("satellite metadata" in lost and "satellite metadata" in result.err, f"{suffix}: named as lost: {lost!r}, {result.err.strip()!r}")
        bench.check(b"METADATATYPE" not in target.read_bytes(), f"{suffix}: does not point to it")
    bench.path("scene.IMD").unlink()
    lost = bench.record("denoise", source, bench.path("scene-out.tif"), "--sigma", "0.02")["denoise"]["files"][0].get("lost", "")
    bench.check(lost == "", f"without the side file nothing is lost: {lost}")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        bench.finish() if bench.failures else skip("TIFF needs GDAL")
    write_safetensors(bench.path("gray.safetensors"), dncnn(channels=1, depth=3, width=16))
    for check in (check_records, check_stale, check_nodata, check_pipes, check_limits, check_satellite):
        check(bench)
    bench.finish()


main()
