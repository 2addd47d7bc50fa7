"""jp2_memory.py PROGRAM: JPEG 2000 files of one tile and of many keep to --memory: what OpenJPEG holds is part of the plan."""
import sys

import numpy as np

from support import MIB, Bench, dncnn, picture, skip, to_integers, write_safetensors

try:
    from osgeo import gdal
    gdal.UseExceptions()
except ImportError:
    skip("the test's files are written with GDAL's Python module")


def write_jp2(path, image, tile):
    """tile: (height, width)"""
    height, width, channels = image.shape
    memory = gdal.GetDriverByName("MEM").Create("", width, height, channels, gdal.GDT_Byte)
    for c in range(channels):
        memory.GetRasterBand(c + 1).WriteArray(image[..., c])
    gdal.GetDriverByName("JP2OpenJPEG").CreateCopy(str(path), memory, options=[f"BLOCKXSIZE={tile[1]}", f"BLOCKYSIZE={tile[0]}"])


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal() or gdal.GetDriverByName("JP2OpenJPEG") is None:
        skip("without GDAL's driver for JPEG 2000")
    models = {n: write_safetensors(bench.path(f"{n}.safetensors"), dncnn(n, depth=3, width=16)) for n in (1, 3)}
    base = picture(500, 700)
    for height, width, channels, tile in ((1500, 2000, 3, (1500, 2000)), (2600, 3600, 1, (2600, 3600)), (1500, 2000, 3, (512, 512))):
        image = np.tile(base, (height // 500 + 1, width // 700 + 1, 1))[:height, :width, :channels]
        write_jp2(bench.path("in.jp2"), to_integers(image, np.uint8), tile)
        words = f"{height} x {width} x {channels} in tiles of {tile[0]} x {tile[1]}"
        command = ["denoise", bench.path("in.jp2"), bench.path("out.tif"), "--model", models[channels], "--json", "-", "--quiet"]
        result = bench.run(*command, "--memory", "120M", watch=True)
        if not bench.check(result.status == 0, f"{words}: runs: {result.err.strip()}"):
            continue
        measured, total = result.record["measured"], result.record["plan"]["peak_bytes"]["total"]
        grown = measured["resident_bytes"] - measured["overhead_bytes"]
        # Looks at the first rows, for zeros that mean nothing and for channels that are equal, decode a tile before the run. What the
        # allocator keeps of that counts as overhead, and the run uses it again: a tile of three channels has 34 MiB as
        # OpenJPEG decodes it, and 9 MiB each in the block cache and as it is read; the tile of one channel has 36 and 9.
        bench.check(total <= 120 * MIB and grown <= total + 4 * MIB and grown >= total - (45 if channels == 1 else 52) * MIB,
                    f"{words}: planned {total / MIB:.1f} MiB, resident grew by {grown / MIB:.1f} MiB")
        if tile[0] < height:
            continue
        least = bench.run(*command, "--memory", "16M")
        bench.check(least.status == 1 and "would do" in least.err, f"{words}: too small a limit is refused: {least.err.strip()}")
    bench.finish()


main()
