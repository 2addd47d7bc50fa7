"""formats.py PROGRAM: files as other programs write them: what they say of their samples, frames and colours is heard, whatever the format."""
import struct
import subprocess
import sys
import time

from support import MIB, Bench, high_water, np, psnr, read_png
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

bench.finish()
