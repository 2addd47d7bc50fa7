"""bands.py PROGRAM: properties of bands: separate ranges, alpha, colours, positions, names and tags.

TIFF and ENVI files are written and parsed byte by byte, without GDAL's programs."""
import re
import struct
import sys

import numpy as np

from support import Bench, dncnn, draw, drunet, picture, psnr, read_png, skip, to_integers, write_png, write_safetensors
from tiff import EXTRA, ITEMS, NODATA, ORIGIN, PHOTOMETRIC, SCALE, STEP, TIE, tags_of, write_tiff

H, W = 64, 80


# --- TIFF ---------------------------------------------------------------------------------------------------------------

def samples_of(path, dtype, bands):
    """Of the one or more strips that lie one after another, as Tessera writes them."""
    start = struct.unpack("<I", tags_of(path)[273][:4])[0]
    return np.frombuffer(path.read_bytes(), np.dtype(dtype).newbyteorder("<"), H * W * bands, start).reshape(H, W, bands)


def numbers(tags, tag):
    return struct.unpack(f"<{len(tags[tag]) // 2}H", tags[tag]) if tag in tags else ()


def colours(path):
    """What GDAL's items say of each band's colour, beyond what the photometric tag says."""
    return re.findall(r'"COLORINTERP" sample="(\d)"[^>]*>(\w+)<', tags_of(path).get(ITEMS, b"").rstrip(b"\0").decode())


def colour_items(names):
    return "".join(f'<Item name="COLORINTERP" sample="{i}" role="colorinterp">{name}</Item>' for i, name in enumerate(names))


# --- checks -------------------------------------------------------------------------------------------------------------

def notes(bench, *args):
    result = bench.run("denoise", *args)
    bench.check(result.status == 0, f"runs: {result}")
    return [line for line in result.err.splitlines() if "cannot hold" in line]


def check_ranges(bench, network):
    """Three bands go through one network with one noise level: like other counts, they are refused when one is small."""
    plain = picture(H, W, 1)[..., None] + 0.02 * np.stack([draw(seed, (H, W)) for seed in range(3)], -1)
    bands = {"a.npy": (plain * [800, 0.8, 800] + [1200, 1.2, 1200]).astype(np.float32), "b.npy": (plain * [20000, 500, 20000]).astype(np.int16),
             "c.npy": (plain * [20000, 500, 20000]).astype(np.uint16), "d.npy": (plain * [1, 0.01, 1]).astype(np.float32),
             "e.npy": (plain * [20, 20, 20] + [0, 500, 1000]).astype(np.int32)}
    for name, image in bands.items():
        np.save(bench.path(name), image)
        bench.check_refused(bench.run("denoise", bench.path(name), bench.path("out.npy"), "--model", network), 2, name, "band 2" if name < "e" else "band", "one by one")
    write_tiff(bench.path("c.tif"), bands["c.npy"], 1, (0, 0))
    bench.check_refused(bench.run("denoise", bench.path("c.tif"), bench.path("out.tif"), "--model", network), 2, "c.tif", "band 2")
    reddish = np.clip(plain * [1, 0.5, 0.05], 0, 1)
    write_png(bench.path("8.png"), to_integers(reddish, np.uint8))
    write_png(bench.path("16.png"), to_integers(reddish, np.uint16))
    write_tiff(bench.path("16.tif"), to_integers(reddish, np.uint16), 2)
    dark = plain * [1, 0.5, 0.1] + 0.02 * np.stack([draw(seed, (H, W)) for seed in range(3)], -1)
    np.save(bench.path("unit.npy"), dark.astype(np.float32))
    np.save(bench.path("8.npy"), to_integers(reddish, np.uint8))
    for name in ("8.png", "16.png", "16.tif", "unit.npy", "8.npy"):
        result = bench.run("denoise", bench.path(name), bench.path("out" + name[-4:]), "--model", network)
        bench.check(result.status == 0, f"a photograph may be reddish: {result}")


def check_alpha(bench, gray, color):
    image = to_integers(picture(H, W, 5), np.uint8)
    write_tiff(bench.path("nir.tif"), image, 2, (0, 2))
    bench.record("denoise", bench.path("nir.tif"), bench.path("nir-out.tif"), "--model", gray)
    tags = tags_of(bench.path("nir-out.tif"))
    bench.check(numbers(tags, EXTRA) == (0, 2), f"only the last of five bands is alpha: {numbers(tags, EXTRA)}")
    bench.check(np.array_equal(samples_of(bench.path("nir-out.tif"), np.uint8, 5)[..., 4], image[..., 4]), "and is carried")
    write_tiff(bench.path("third.tif"), image, 2, (2, 0))
    bench.check_refused(bench.run("denoise", bench.path("third.tif"), bench.path("out.tif"), "--model", gray), 1, "band 4 of 5 is alpha", "gdal_translate")
    for extra in (1, 2):
        write_tiff(bench.path("as.tif"), image[..., :4], 2, (extra,))
        bench.record("denoise", bench.path("as.tif"), bench.path("as-out.tif"), "--model", color)
        found = numbers(tags_of(bench.path("as-out.tif")), EXTRA)
        bench.check(found == (extra,), f"alpha of kind {extra} stays that: {found}")
    write_tiff(bench.path("as5.tif"), image, 2, (0, 1))
    bench.record("denoise", bench.path("as5.tif"), bench.path("as5-out.tif"), "--model", gray)
    bench.check(numbers(tags_of(bench.path("as5-out.tif")), EXTRA) == (0, 1), "also behind another band")
    write_tiff(bench.path("as.tif"), image[..., :4], 2, (1,))
    bench.check_refused(bench.run("denoise", bench.path("as.tif"), bench.path("as.png"), "--model", color), 2, "multiplied by alpha", ".tif")


def check_opaque(bench, gray):
    """Alpha of types whose maximum nobody writes."""
    alpha = np.full((H, W), 255.0)
    alpha[:9], alpha[9:20] = 0, 64
    for dtype, opaque in ((np.int32, 255), (np.uint32, 255), (np.float32, 255), (np.float32, 1), (np.int16, 32767), (np.uint16, 65535)):
        image = np.stack([400 + 900 * picture(H, W, 1).reshape(H, W), alpha * opaque / 255], -1).astype(dtype)
        write_tiff(bench.path("alpha.tif"), image, 1, (2,))
        bench.record("denoise", bench.path("alpha.tif"), bench.path("alpha.png"), "--model", gray, "--range", "400,1800")
        made = read_png(bench.path("alpha.png"))[..., 1].astype(float) / 65535
        bench.check(np.abs(made - image[..., 1] / opaque).max() < 1e-4, f"{dtype.__name__} with {opaque} as opaque: {np.unique(made)}")


def check_colours(bench, gray, color):
    image = to_integers(picture(H, W, 4), np.uint8)
    for names, model in ((["Blue", "Green", "Red"], color), (["Blue", "Green", "Red", "Undefined"], gray)):
        count = len(names)
        write_tiff(bench.path("bgr.tif"), image[..., :count], 1, (0,) * (count - 1), items=colour_items(names))
        bench.record("denoise", bench.path("bgr.tif"), bench.path("bgr-out.tif"), "--model", model)
        found = colours(bench.path("bgr-out.tif"))
        bench.check([name for _, name in found][:3] == names[:3], f"blue, green and red stay in this order: {found}")
        bench.check(numbers(tags_of(bench.path("bgr-out.tif")), PHOTOMETRIC) == (1,), "and the tag says no RGB")
    # GDAL's gdal_translate writes the tag RGB for any three bands of 8 bits, and says in its items what they are.
    for names, extra, model in ((["Blue", "Green", "Red"], (), color), (["Blue", "Green", "Red", "Undefined"], (0,), gray)):
        write_tiff(bench.path("t.tif"), image[..., :len(names)], 2, extra, items=colour_items(names))
        bench.record("denoise", bench.path("t.tif"), bench.path("t-out.tif"), "--model", model)
        found = [name for _, name in colours(bench.path("t-out.tif"))]
        bench.check(found[:3] == names[:3], f"also beside the tag RGB: {found}")
    write_tiff(bench.path("u.tif"), image[..., :3], 2, items=colour_items(["Undefined"] * 3))
    bench.record("denoise", bench.path("u.tif"), bench.path("u-out.tif"), "--model", color)
    found = numbers(tags_of(bench.path("u-out.tif")), PHOTOMETRIC)
    bench.check(found == (1,), f"bands without colour do not become red, green and blue: {found}")
    # PNG and others have one order.
    for names, take in ((["Blue", "Green", "Red"], [2, 1, 0]), (["Green", "Blue", "Red"], [2, 0, 1]), (["Blue", "Green", "Red", "Alpha"], [2, 1, 0, 3])):
        alpha = len(names) - 3
        for dtype in (np.uint8, np.uint16):
            bands = image[..., :len(names)].astype(dtype) * (257 if dtype is np.uint16 else 1)
            write_tiff(bench.path("o.tif"), bands, 1, (0,) * 2 + (2,) * alpha, items=colour_items(names[:3]))
            bench.record("denoise", bench.path("o.tif"), bench.path("o.png"), "--model", gray, "--strength", "0")
            bench.check(np.array_equal(read_png(bench.path("o.png")), bands[..., take]), f"{names} of {dtype.__name__} are put in the order of a PNG")
    bench.record("denoise", bench.path("t.tif"), bench.path("t.npy"), "--model", gray, "--strength", "0")
    bench.check(np.array_equal(np.load(bench.path("t.npy")), image), "an array keeps the order of the bands")
    # The network sees red, green and blue, and the result has the order of the file.
    for dtype in (np.uint8, np.uint16):
        bands = image[..., :3].astype(dtype) * (257 if dtype is np.uint16 else 1)
        write_tiff(bench.path("rgb.tif"), bands, 2)
        bench.record("denoise", bench.path("rgb.tif"), bench.path("rgb-out.tif"), "--model", color, "--sigma", "0.1")
        wanted = samples_of(bench.path("rgb-out.tif"), dtype, 3).astype(float)
        for names, take in ((["Blue", "Green", "Red"], [2, 1, 0]), (["Green", "Blue", "Red"], [1, 2, 0])):
            for extra, add in (((), ()), ((2,), (image[..., 3:].astype(dtype),))):
                write_tiff(bench.path("o.tif"), np.concatenate((bands[..., take], *add), -1), 1, (0,) * 2 + extra, items=colour_items(names))
                record = bench.record("denoise", bench.path("o.tif"), bench.path("o-out.tif"), "--model", color, "--sigma", "0.1", "--truth", bench.path("rgb.tif"))
                found = samples_of(bench.path("o-out.tif"), dtype, 3 + len(extra))[..., :3].astype(float)
                far = np.abs(found - wanted[..., take]).max() / np.iinfo(dtype).max
                bench.check(far < 0.006, f"{names} of {dtype.__name__} are seen as red, green and blue: {far:.4f} from their result")
                bench.check(abs(record["denoise"]["files"][0]["psnr_db"] - psnr(wanted, bands.astype(float), np.iinfo(dtype).max)) < 0.1, "and compared so with a truth")


def check_position(bench, color):
    image = to_integers(picture(H, W, 3), np.uint8)
    write_tiff(bench.path("geo.tif"), image, 2, position=True)
    world = [STEP, 0, 0, -STEP, ORIGIN[0] + STEP / 2, ORIGIN[1] - STEP / 2]
    for suffix, side in (("jpg", "jgw"), ("png", "pgw"), ("bmp", "bpw")):
        lost = notes(bench, bench.path("geo.tif"), bench.path(f"geo.{suffix}"), "--model", color)
        found = bench.path(f"geo.{side}")
        values = [float(line) for line in found.read_text().split()] if found.exists() else None
        bench.check(values == world, f"a world file has the position of a .{suffix}: {values}")
        bench.check(len(lost) == 1 and lost[0].endswith("cannot hold the projection"), f"and a note says what is lost: {lost}")
        notes(bench, bench.path(f"geo.{suffix}"), bench.path("back.tif"), "--model", color)
        tags = tags_of(bench.path("back.tif"))
        tie, scale = (struct.unpack(f"<{len(tags.get(t, b'')) // 8}d", tags.get(t, b"")) for t in (TIE, SCALE))
        bench.check(tie[3:5] == ORIGIN and scale[:2] == (STEP, STEP), f"and from there it gets into a TIFF: {tie} {scale}")
    lost = notes(bench, bench.path("geo.tif"), bench.path("geo.npy"), "--model", color)
    bench.check(len(lost) == 1 and "georeference, projection" in lost[0], f"an array has no position: {lost}")
    mask = np.full((H, W), 255)
    mask[3:9, 5:20] = 0
    write_tiff(bench.path("mask.tif"), image, 2, mask=mask)
    lost = notes(bench, bench.path("mask.tif"), bench.path("mask.png"), "--model", color)
    bench.check(len(lost) == 1 and lost[0].endswith("cannot hold the mask"), f"nor has a PNG a mask: {lost}")
    bench.check(np.array_equal(read_png(bench.path("mask.png"))[mask == 0], image[mask == 0]), "the masked samples are as they were")


def check_raster(bench, gray):
    """What is easier made with GDAL's Python module, where it is."""
    try:
        from osgeo import gdal, osr
    except ImportError:
        print("without GDAL's Python module (Debian: python3-gdal) epoch and polynomials are left out")
        return
    gdal.UseExceptions()
    made = gdal.GetDriverByName("GTiff").Create(str(bench.path("epoch.tif")), W, H, 1, gdal.GDT_Byte)
    made.GetRasterBand(1).WriteArray(to_integers(picture(H, W, 1), np.uint8).reshape(H, W))
    place = osr.SpatialReference()
    place.SetFromUserInput("EPSG:9000")
    place.SetCoordinateEpoch(2021.3)
    made.SetSpatialRef(place)
    made.SetGeoTransform((10, 0.001, 0, 50, 0, -0.001))
    made = None
    lost = notes(bench, bench.path("epoch.tif"), bench.path("epoch-out.tif"), "--model", gray)
    result = gdal.Open(str(bench.path("epoch-out.tif")))
    bench.check(not lost and result.GetSpatialRef().GetCoordinateEpoch() == 2021.3, f"a projection keeps its epoch: {result.GetSpatialRef().GetCoordinateEpoch()}")
    one, many = "LINE_OFF SAMP_OFF LAT_OFF LONG_OFF HEIGHT_OFF LINE_SCALE SAMP_SCALE LAT_SCALE LONG_SCALE HEIGHT_SCALE", "LINE_NUM_COEFF LINE_DEN_COEFF SAMP_NUM_COEFF SAMP_DEN_COEFF"
    made = gdal.GetDriverByName("GTiff").Create(str(bench.path("rpc.tif")), W, H, 1, gdal.GDT_Byte)
    made.SetMetadata({**{name: "1" for name in one.split()}, **{name: " ".join(["1"] * 20) for name in many.split()}}, "RPC")
    made = None
    lost = notes(bench, bench.path("rpc.tif"), bench.path("rpc.png"), "--model", gray)
    bench.check(len(lost) == 1 and lost[0].endswith("cannot hold the rational polynomials (RPC)"), f"rational polynomials are no control points: {lost}")
    lost = notes(bench, bench.path("rpc.tif"), bench.path("rpc-out.tif"), "--model", gray)
    bench.check(not lost and gdal.Open(str(bench.path("rpc-out.tif"))).GetMetadata("RPC"), "a TIFF has a place for them")
    check_envi_position(bench, gray, gdal, osr)


def check_envi_position(bench, gray, gdal, osr):
    """A position that the header cannot hold is left out, with a note, and never a false one."""
    turned = (5e5, 9.397, 3.42, 4e6, 3.42, -9.397)
    for name, code, transform in (("plain", 2056, (5e5, 10, 0, 4e6, 0, -10)), ("turned, UTM", 32611, turned), ("turned, Swiss", 2056, turned),
                                  ("south up", 3857, (5e5, 10, 0, 4e6, 0, 10)), ("sheared", 32611, (5e5, 10, 2, 4e6, 0, -10)), ("sheared", None, (5e5, 10, 2, 4e6, 0, -10))):
        made = gdal.GetDriverByName("GTiff").Create(str(bench.path("place.tif")), W, H, 1, gdal.GDT_Byte)
        made.GetRasterBand(1).WriteArray(to_integers(picture(H, W, 1), np.uint8).reshape(H, W))
        place = osr.SpatialReference()
        if code:
            place.ImportFromEPSG(code)
            made.SetSpatialRef(place)
        made.SetGeoTransform(transform)
        made = None
        lost = notes(bench, bench.path("place.tif"), bench.path("place.img"), "--model", gray)
        result = gdal.Open(str(bench.path("place.img")))
        found = result.GetGeoTransform(can_return_null=True)
        right = found is not None and np.allclose(found, transform, atol=1e-6)
        bench.check(right != bool(lost) and (right or (found is None and result.GetSpatialRef() is None and "georeference" in lost[0])), f"{name}: {found} {lost}")
        bench.check(right or "plain" != name, "a plain position is held")


def check_tags(bench, gray):
    image = (1000 * picture(H, W, 2)).astype(np.float32)
    items = "".join(f'<Item name="wavelength" sample="{i}">{650 + i}</Item><Item name="UNITTYPE" sample="{i}" role="unittype">K</Item>' for i in (0, 1))
    write_tiff(bench.path("tags.tif"), image, 1, (0,), items=items + '<Item name="mine">yes</Item><Item name="STATISTICS_MEAN" sample="0">7</Item>')
    bench.check(notes(bench, bench.path("tags.tif"), bench.path("tags-out.tif"), "--model", gray) == [], "a TIFF holds what a TIFF says")
    text = tags_of(bench.path("tags-out.tif")).get(ITEMS, b"").rstrip(b"\0").decode()
    found = re.findall(r'"wavelength" sample="(\d)"[^>]*>(\d+)<', text)
    bench.check(found == [("0", "650"), ("1", "651")] and "mine" in text and "MEAN" not in text, f"items of bands, but no statistics: {text}")
    own = '<Item name="a" domain="MINE">1</Item><Item name="b" sample="0" domain="YOURS">2</Item>'
    write_tiff(bench.path("own.tif"), image, 1, (0,), items=own)
    bench.check(notes(bench, bench.path("own.tif"), bench.path("own-out.tif"), "--model", gray) == [], "also in domains of one's own")
    text = tags_of(bench.path("own-out.tif")).get(ITEMS, b"").rstrip(b"\0").decode()
    bench.check('domain="MINE"' in text and 'domain="YOURS"' in text, f"which are kept: {text}")
    lost = notes(bench, bench.path("own.tif"), bench.path("own.img"), "--model", gray)
    bench.check(len(lost) == 1 and "tags" in lost[0], f"or named as lost: {lost}")
    lost = notes(bench, bench.path("tags.tif"), bench.path("tags.img"), "--model", gray)
    bench.check(len(lost) == 1 and lost[0].endswith("cannot hold the unit, tags"), f"an ENVI header does not: {lost}")
    bench.check("tags.img}" in bench.path("tags.hdr").read_text(), f"its description is its name: {bench.path('tags.hdr').read_text()}")


def check_envi(bench, gray):
    image = (1000 * picture(H, W, 2)).astype("<f4")
    bench.path("e1.img").write_bytes(np.moveaxis(image, -1, 0).tobytes())
    bench.path("e1.hdr").write_text(f"ENVI\ndescription = {{\n  a scene}}\nsamples = {W}\nlines = {H}\nbands = 2\nheader offset = 0\n"
                                    "file type = ENVI Standard\ndata type = 4\ninterleave = bsq\nbyte order = 0\nwavelength units = Nanometers\n"
                                    "wavelength = {650, 550}\nband names = {red one, Band 2}\n")
    for i in (1, 2):
        bench.check(notes(bench, bench.path(f"e{i}.img"), bench.path(f"e{i + 1}.img"), "--model", gray) == [], "ENVI holds what ENVI says")
    bench.check(notes(bench, bench.path("e1.img"), bench.path("e1.tif"), "--model", gray) == [], "and so does TIFF")
    bench.path("e4.img").write_bytes(bench.path("e1.img").read_bytes())
    bench.path("e4.hdr").write_text(bench.path("e1.hdr").read_text() + "sensor type = Unknown\n")
    lost = notes(bench, bench.path("e4.img"), bench.path("e4.tif"), "--model", gray)
    bench.check(len(lost) == 1 and "fields of the ENVI header" in lost[0], f"but not other fields: {lost}")
    items = "".join(f'<Item name="DESCRIPTION" sample="{i}" role="description">{name}</Item>' for i, name in enumerate(("Blue, 450 nm", "Red {650}")))
    write_tiff(bench.path("names.tif"), image.astype(np.float32), 1, (0,), items=items)
    lost = notes(bench, bench.path("names.tif"), bench.path("names.img"), "--model", gray)
    text = re.sub(r"\s+", " ", bench.path("names.hdr").read_text())
    bench.check("band names = { Blue; 450 nm, Red (650)}" in text and len(lost) == 1 and "commas and braces" in lost[0], f"names stay at their bands: {lost} {text}")
    text = re.sub(r"\s+", " ", bench.path("e3.hdr").read_text())
    bench.check("description = { a scene}" in text, f"the description stays: {text}")
    bench.check("band names = { red one, Band 2}" in text and "wavelength = {650, 550}" in text, f"names and wavelengths stay as they are: {text}")


def check_nodata(bench, gray):
    least = -1.7976931348623157e308
    image = 1000 * picture(H, W, 1).astype(np.float64)
    image[2:5, 3:9] = least
    write_tiff(bench.path("least.tif"), image, nodata=repr(least))
    record = bench.record("denoise", bench.path("least.tif"), bench.path("least-out.tif"), "--model", gray)
    found = tags_of(bench.path("least-out.tif")).get(NODATA, b"").rstrip(b"\0").decode()
    value = np.float32(found or 0)
    bench.check(value == np.finfo(np.float32).min, f"the least double becomes the least float, not {found}")
    holes = samples_of(bench.path("least-out.tif"), np.float32, 1)[..., 0] == value
    bench.check(record and record["denoise"]["files"][0]["holes"] == 18 and np.array_equal(holes, image == least), "and so do the samples that it marks")
    np.save(bench.path("one.npy"), picture(H, W, 1)[..., None])
    bench.record("denoise", bench.path("one.npy"), bench.path("one-out.npy"), "--model", gray)
    bench.check(np.load(bench.path("one-out.npy")).shape == (H, W, 1), "an array of one channel keeps its axis")


def check_fourth(bench):
    """A fourth band of no stated meaning is a band like the others, not alpha; a note says so."""
    image = to_integers(picture(H, W, 4), np.uint8)
    image[5:15, 5:15, 3] = 0
    for extra, options, noted in (((0,), {}, True), ((2,), {}, False), ((0,), {"items": '<Item name="DESCRIPTION" sample="3" role="description">NIR</Item>'}, False)):
        write_tiff(bench.path("four.tif"), image, 2, extra, **options)
        result = bench.run("denoise", bench.path("four.tif"), bench.path("four-out.tif"), "--sigma", "0.05")
        made = samples_of(bench.path("four-out.tif"), np.uint8, 4)
        changed = not np.array_equal(made[..., 3], image[..., 3])
        bench.check(result.status == 0 and ("fourth band" in result.err and "-colorinterp_4 alpha" in result.err) == noted and changed == (extra == (0,)) and
                    numbers(tags_of(bench.path("four-out.tif")), EXTRA) == extra, f"{extra}, {options}: changed {changed}, {result.err.strip()}")
    write_tiff(bench.path("four.tif"), image, 2, (0,))
    bench.check_refused(bench.run("denoise", bench.path("four.tif"), bench.path("four.png")), 2, "PNG", "4 channels")


def check_inks(bench, color, gray):
    """CMYK is read as RGB; white as 0."""
    write_tiff(bench.path("lab.tif"), to_integers(picture(H, W, 3), np.uint8), 8)
    result = bench.run("denoise", bench.path("lab.tif"), bench.path("lab-out.tif"), "--model", color)
    made = tags_of(bench.path("lab-out.tif"))
    bench.check(result.status == 0 and "CIELAB" in result.err and len(numbers(made, 258)) == 3, f"so is CIELAB: {result.err.strip()}")
    inks = to_integers(picture(H, W, 4), np.uint8)
    write_tiff(bench.path("cmyk.tif"), inks, 5)
    result = bench.run("denoise", bench.path("cmyk.tif"), bench.path("cmyk-out.tif"), "--model", color)
    made = tags_of(bench.path("cmyk-out.tif"))
    bench.check(result.status == 0 and "CMYK" in result.err and numbers(made, PHOTOMETRIC) == (2,) and len(numbers(made, 258)) == 3,
                f"CMYK is read as RGB without alpha, and it is said: {result.err.strip()}")
    write_tiff(bench.path("beside.tif"), to_integers(picture(H, W, 5), np.uint8), 5, (2,))
    for suffix in ("tif", "png"):
        lost = notes(bench, bench.path("beside.tif"), bench.path(f"beside-out.{suffix}"), "--model", color)
        bench.check(len(lost) == 1 and "alpha" in lost[0], f"the alpha beside CMYK is gone, and it is said: {lost}")
    inks[10:20, 10:20] = (0, 255, 255, 0)  # red: no ink is no hole
    write_tiff(bench.path("none.tif"), inks, 5, nodata="0")
    lost = notes(bench, bench.path("none.tif"), bench.path("none-out.tif"), "--model", color)
    bench.check(len(lost) == 1 and "nodata value" in lost[0] and NODATA not in tags_of(bench.path("none-out.tif")), f"a nodata value of inks is none of RGB: {lost}")
    record = bench.record("denoise", bench.path("none.tif"), bench.path("none-out.tif"), "--model", color)
    bench.check(record and record["denoise"]["files"][0].get("holes", 0) == 0 and "nodata" in record["denoise"]["files"][0]["lost"], f"nor makes it holes: {record and record['denoise']['files']}")
    for dtype in (np.uint8, np.uint16):
        write_tiff(bench.path("white.tif"), to_integers(picture(H, W, 1), dtype), 0)
        write_tiff(bench.path("black.tif"), to_integers(picture(H, W, 1), dtype), 1)
        for name in ("white", "black"):
            bench.record("denoise", bench.path(f"{name}.tif"), bench.path(f"{name}-out.tif"), "--model", gray)
        same = np.array_equal(samples_of(bench.path("white-out.tif"), dtype, 1), samples_of(bench.path("black-out.tif"), dtype, 1))
        bench.check(same and numbers(tags_of(bench.path("white-out.tif")), PHOTOMETRIC) == (0,), f"{dtype.__name__} with white as 0 stay so")
    lost = notes(bench, bench.path("white.tif"), bench.path("white.png"), "--model", gray)
    bench.check(len(lost) == 1 and "negative" in lost[0], f"a PNG would show a negative: {lost}")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("GDAL is not there")
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=16))
    color = write_safetensors(bench.path("color.safetensors"), dncnn(3, depth=3, width=16))
    check_ranges(bench, write_safetensors(bench.path("network.safetensors"), drunet(3, widths=(16, 16, 16, 16))))
    check_alpha(bench, gray, color)
    check_opaque(bench, gray)
    check_inks(bench, color, gray)
    check_fourth(bench)
    check_colours(bench, gray, color)
    check_position(bench, color)
    check_raster(bench, gray)
    check_tags(bench, gray)
    check_envi(bench, gray)
    check_nodata(bench, gray)
    bench.finish()


main()
