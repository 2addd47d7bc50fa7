"""hostile_files.py PROGRAM: files that refer to other files, and results that must not replace files of another image.

Rasters that name an address or a file outside their folder, links in place of results and temporary files, headers
that two rasters share, and GDAL short of memory. A local listener counts connections: there must be none.
"""
import http.server
import os
import resource
import shutil
import stat
import subprocess
import sys
import threading

import numpy as np

from support import Bench, dncnn, leftovers, picture, skip, to_integers, write_png, write_safetensors

HEADER = ("ENVI\nsamples = {}\nlines = {}\nbands = {}\nheader offset = 0\nfile type = ENVI Standard\ndata type = {}\n"
          "interleave = {}\nbyte order = 0\n")


def write_envi(path, header, image, interleave):
    """One band of uint8."""
    path.write_bytes(image.tobytes())
    header.write_text(HEADER.format(image.shape[1], image.shape[0], 1, 1, interleave))


def denoise(bench, source, target, *more, **how):
    return bench.run("denoise", source, target, "--model", bench.path("gray.safetensors"), "--quiet", *more, **how)


def check_headers(bench):
    folder = bench.path("envi")
    folder.mkdir()
    image = to_integers(picture(24, 31, 1), np.uint8)
    write_envi(folder / "y.bil", folder / "y.hdr", image, "bil")
    before = (folder / "y.hdr").read_bytes()
    write_png(folder / "plain.png", image)
    denoise(bench, folder / "plain.png", folder / "expected.npy")
    expected = np.load(folder / "expected.npy")

    result = denoise(bench, folder / "y.bil", folder / "y.bsq")
    bench.check(result.status == 0 and (folder / "y.hdr").read_bytes() == before,
                f"a result beside its input leaves the input's header as it was: {result}")
    for name in ("y.bil", "y.bsq"):
        result = denoise(bench, folder / name, folder / "again.npy")
        bench.check(result.status == 0 and np.load(folder / "again.npy").shape == (24, 31), f"{name} is read again: {result}")
    raw = np.frombuffer((folder / "y.bsq").read_bytes(), np.uint8).reshape(24, 31)
    bench.check(np.array_equal(raw, expected), "the values are those of the same image from a PNG")

    result = denoise(bench, folder / "plain.png", folder / "new.bsq")
    bench.check(result.status == 0 and (folder / "new.hdr").exists(), f"where NAME.hdr is free, it is the header: {result}")
    write_png(folder / "small.png", to_integers(picture(16, 20, 1), np.uint8))
    result = denoise(bench, folder / "small.png", folder / "new.bsq")
    bench.check(result.status == 0 and "samples = 20" in (folder / "new.hdr").read_text() and
                not (folder / "new.bsq.hdr").exists(), f"a raster that is replaced keeps its header's name: {result}")

    for record, source, target in (("y.hdr", "y.bil", "z.npy"), ("out.hdr", "plain.png", "out.bsq"),
                                   ("out.bsq.hdr", "plain.png", "out.bsq")):
        result = denoise(bench, folder / source, folder / target, "--json", folder / record)
        bench.check_refused(result, 2, "--json", record)
    bench.check((folder / "y.hdr").read_bytes() == before, "a header is not replaced by a record")
    result = denoise(bench, folder / "plain.png", folder / "new.bsq", "--json", folder / "other.hdr")
    bench.check(result.status == 0, f"a record may have any other name: {result}")


def check_links(bench):
    folder = bench.path("links")
    folder.mkdir()
    np.save(folder / "x.npy", picture(24, 31, 1))
    (folder / "photo.jpg").write_bytes(b"a photo")
    (folder / "out.tif").symlink_to("photo.jpg")
    result = denoise(bench, folder / "x.npy", folder / "out.tif")
    bench.check_refused(result, 2, "out.tif", "photo.jpg", "format")
    bench.check((folder / "photo.jpg").read_bytes() == b"a photo", "the file behind the link is as it was")
    (folder / "there.tiff").symlink_to("new.tif")
    result = denoise(bench, folder / "x.npy", folder / "there.tiff")
    bench.check(result.status == 0 and (folder / "there.tiff").is_symlink() and
                (folder / "new.tif").read_bytes()[:2] in (b"II", b"MM"), f"a link to a name of the same format is followed: {result}")
    bench.check(not leftovers(folder), f"nothing is left: {leftovers(folder)}")


def check_temporary_names(bench):
    """The process's number is known before it starts: `exec` keeps it. Names made from it could be foreseen."""
    folder = bench.path("temp")
    folder.mkdir()
    write_png(folder / "x.png", to_integers(picture(24, 31, 1), np.uint8))
    victim = folder / "victim"
    victim.write_text("precious")
    for name in ("y.jpg", "y.tif", "y.bsq", "y.png", "y.npy"):
        script = (f'for end in 0.tif 0.hdr 1.tif 1.hdr; do ln -s "{victim}" "{folder}/{name}.tmp-$$-$end"; done; exec "$@"')
        done = subprocess.run(["sh", "-c", script, "sh", bench.program, "denoise", folder / "x.png", folder / name, "--model",
                               bench.path("gray.safetensors"), "--quiet"], stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, "TESSERA_CACHE": str(bench.cache)})
        bench.check(done.returncode == 0 and victim.read_bytes() == b"precious", f"{name}: no link is followed while it is written")
        for link in folder.glob("*.tmp-*"):
            link.unlink()
    mask = os.umask(0o027)
    try:
        for name in ("y.jpg", "y.tif", "y.bsq", "y.png", "y.npy"):
            (folder / name).unlink()
            denoise(bench, folder / "x.png", folder / name)
            fresh = stat.S_IMODE((folder / name).stat().st_mode)
            (folder / name).chmod(0o604)
            denoise(bench, folder / "x.png", folder / name)
            again = stat.S_IMODE((folder / name).stat().st_mode)
            bench.check((fresh, again) == (0o640, 0o604), f"{name}: a new file follows the umask, a replaced one keeps its "
                                                          f"permissions ({fresh:o}, {again:o})")
    finally:
        os.umask(mask)
    bench.check(not leftovers(folder), f"nothing is left: {leftovers(folder)}")


class Listener(http.server.BaseHTTPRequestHandler):
    def handle(self):
        self.server.visits += 1


VRT = ('<VRTDataset rasterXSize="31" rasterYSize="24">\n<VRTRasterBand dataType="Byte" band="1">\n<SimpleSource>\n'
       '<SourceFilename relativeToVRT="{}">{}</SourceFilename>\n<SourceBand>1</SourceBand>\n'
       '<SrcRect xOff="0" yOff="0" xSize="31" ySize="24"/>\n<DstRect xOff="0" yOff="0" xSize="31" ySize="24"/>\n'
       '</SimpleSource>\n</VRTRasterBand>\n</VRTDataset>\n')
WMS = ('<GDAL_WMS><Service name="TMS"><ServerUrl>http://127.0.0.1:{}/${{z}}/${{x}}/${{y}}.png</ServerUrl></Service>\n'
       '<DataWindow><UpperLeftX>-100</UpperLeftX><UpperLeftY>100</UpperLeftY><LowerRightX>100</LowerRightX>\n'
       '<LowerRightY>-100</LowerRightY><SizeX>31</SizeX><SizeY>24</SizeY></DataWindow><BandsCount>1</BandsCount></GDAL_WMS>\n')


def check_references(bench):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    server.visits = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    folder = bench.path("vrt")
    (folder / "in").mkdir(parents=True)
    outside = folder / "outside.tif"
    write_png(folder / "x.png", to_integers(picture(24, 31, 1), np.uint8))
    denoise(bench, folder / "x.png", outside)
    inside = folder / "in"
    (inside / "tile.tif").write_bytes(outside.read_bytes())
    (inside / "linked.tif").symlink_to(outside)
    (inside / "good.vrt").write_text(VRT.format(1, "tile.tif"))
    (inside / "disguised.tif").write_text(VRT.format(1, "tile.tif"))

    result = denoise(bench, inside / "good.vrt", folder / "good.npy")
    bench.check(result.status == 0 and denoise(bench, inside / "tile.tif", folder / "tile.npy").status == 0 and
                np.array_equal(np.load(folder / "good.npy"), np.load(folder / "tile.npy")),
                f"a VRT over a file beside it is read: {result}")
    bad = {
        "address": VRT.format(0, f"http://127.0.0.1:{port}/a.tif"), "curl": VRT.format(0, f"/vsicurl/http://127.0.0.1:{port}/a.tif"),
        "curl2": VRT.format(1, f"/vsicurl/http://127.0.0.1:{port}/a.tif"), "absolute": VRT.format(0, outside),
        "absolute1": VRT.format(1, outside), "above": VRT.format(1, "../outside.tif"), "link": VRT.format(1, "linked.tif"),
        "nested": VRT.format(1, "good.vrt"), "hidden": VRT.format(1, "disguised.tif"),
        "prefix": VRT.format(1, "GTIFF_DIR:1:tile.tif"), "cwd": VRT.format(0, "tile.tif"),
        "entity": VRT.format(1, "&#46;&#46;/outside.tif"), "comment": "<!-- -->" + VRT.format(1, "tile.tif"),
        "derived": VRT.format(1, "tile.tif").replace('band="1"', 'band="1" subClass="VRTDerivedRasterBand"'),
        "lower": VRT.format(1, "tile.tif").replace('band="1"', 'band="1" subclass="VRTRawRasterBand"'),
        "twice": VRT.format(1, "tile.tif").replace("relativeToVRT", 'RELATIVETOVRT="0" relativeToVRT'),
        "options": VRT.format(1, "tile.tif").replace("<SourceBand>", '<OpenOptions><OOI key="A">1</OOI></OpenOptions><SourceBand>'),
        "system": VRT.format(1, "tile.tif").replace("<VRTRasterBand", f"<SRS>http://127.0.0.1:{port}/srs</SRS><VRTRasterBand"),
        "service": WMS.format(port),
    }
    for name, text in bad.items():
        for suffix in (".vrt", ".dat", ".tif"):
            path = inside / (name + suffix)
            path.write_text(text)
            bench.check_refused(denoise(bench, path, folder / "bad.npy", cwd=inside), 1, path.name)
            path.unlink()
    (inside / "GTIFF_DIR:1:tile.tif").write_text("not a TIFF")
    result = denoise(bench, "GTIFF_DIR:1:tile.tif", folder / "bad.npy", cwd=inside)
    bench.check_refused(result, 1, "GTIFF_DIR")
    (inside / "service.hdf").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 8)
    bench.check_refused(denoise(bench, inside / "service.hdf", folder / "bad.npy"), 1, "service.hdf")
    denoise(bench, inside, folder / "all")
    bench.check(not (folder / "all" / "good.vrt").exists() and (folder / "all" / "tile.tif").exists(), "a folder's VRTs are not read")
    os.mkfifo(inside / "tiles.log")
    result = denoise(bench, inside / "tile.tif", folder / "beside.npy", timeout=60)
    bench.check(result.status == 0, f"a pipe that is none of the image's files does not matter: {result}")
    os.mkfifo(inside / "tile.tfw")
    bench.check_refused(denoise(bench, inside / "tile.tif", folder / "bad.npy", timeout=60), 1, "tile.tfw")
    server.shutdown()
    bench.check(server.visits == 0, f"nobody connects ({server.visits} did)")
    bench.check(not (folder / "bad.npy").exists(), "nothing is written")


def check_spill(bench):
    """Erdas Imagine keeps the samples of large images in a second file, by name."""
    tool = shutil.which("gdal_create")
    if not tool:
        print("no gdal_create: Erdas Imagine is not tried")
        return
    folder = bench.path("spill")
    (folder / "in").mkdir(parents=True)
    good, bad = folder / "in" / "spill.img", folder / "in" / "other.img"
    subprocess.run([tool, "-q", "-of", "HFA", "-outsize", "32", "32", "-bands", "1", "-co", "USE_SPILL=YES", good], check=True)
    bench.check(denoise(bench, good, folder / "y.npy").status == 0, "samples in a file beside the image are read")
    (folder / "xx.ige").write_bytes((folder / "in" / "spill.ige").read_bytes())
    bad.write_bytes(good.read_bytes().replace(b"spill.ige", b"../xx.ige"))
    bench.check_refused(denoise(bench, bad, folder / "y.npy"), 1, "other.img", "outside its folder")


def check_memory(bench):
    folder = bench.path("memory")
    folder.mkdir()
    (folder / "many.hdr").write_text(HEADER.format(2, 2, 65535, 1, "bsq"))
    (folder / "many.img").write_bytes(bytes(2 * 2 * 65535))
    write_png(folder / "x.png", to_integers(picture(24, 31, 1), np.uint8))
    denoise(bench, folder / "x.png", folder / "x.tif")

    def limited(kilobytes, name):
        return denoise(bench, folder / name, folder / "y.npy", "--threads", "1",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10,) * 2))

    if limited(2000000, "x.tif").status != 0:
        print("this build does not run with limited address space: not tried")
        return
    reasons = set()
    for kilobytes in range(100000, 420000, 16000):
        for name in ("many.img", "x.tif"):
            result = limited(kilobytes, name)
            if result.status not in (0, 1) or len(result.lines) != result.status or "not installed" in result.err:
                bench.check(False, f"{kilobytes} KiB: {result}")
            reasons.add(result.status)
    bench.check(1 in reasons, "with too little memory there is one line that says so, and no signal")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("GDAL is not installed")
    write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=8))
    check_headers(bench)
    check_links(bench)
    check_temporary_names(bench)
    check_references(bench)
    check_spill(bench)
    check_memory(bench)
    bench.finish()


if __name__ == "__main__":
    main()
