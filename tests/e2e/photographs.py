"""photographs.py PROGRAM: what telephones put behind a JPEG's image is named when it is lost; colour spaces that a PNG gives by numbers become profiles."""
import math
import struct
import sys
import zlib

import numpy as np

from support import Bench, dncnn, picture, png_chunk, skip, to_integers, write_png, write_safetensors
from tiff import write_tiff

XMP_NAME = b"http://ns.adobe.com/xap/1.0/\0"
FILM = b"\0\0\0\x18ftypmp42\0\0\0\0isommp42" + b"v" * 50000
SPACES = ('xmlns:GCamera="http://ns.google.com/photos/1.0/camera/" xmlns:h="http://ns.adobe.com/hdr-gain-map/1.0/" '
          'xmlns:Container="http://ns.google.com/photos/1.0/container/" xmlns:Item="http://ns.google.com/photos/1.0/container/item/" '
          "xmlns:xmp='http://ns.adobe.com/xap/1.0/'")
STATED = ('GCamera:MotionPhoto="1"', "GCamera:MicroVideoOffset = '50024'", 'h:Version="1.0"', '<h:GainMapMax>2.5</h:GainMapMax>',
          '<Container:Directory><rdf:Seq><rdf:li rdf:parseType="Resource"><Container:Item Item:Semantic="GainMap"/></rdf:li></rdf:Seq></Container:Directory>')
KEPT = ('xmp:Rating="4"', 'GCamera:PortraitNote="x"', "<xmp:Label>film h:Version of summer</xmp:Label>")
PACKET = (f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description {SPACES} '
          f'{KEPT[0]} {STATED[0]} {STATED[1]} {KEPT[1]} {STATED[2]}>{STATED[3]}{KEPT[2]}{STATED[4]}</rdf:Description></rdf:RDF></x:xmpmeta>').encode()


def segment(marker, body):
    return struct.pack(">BBH", 0xff, marker, len(body) + 2) + body


def listed(kinds, order=">"):
    """An MPF segment for the image and others of these kinds."""
    entries = b"".join(struct.pack(order + "IIIHH", kind, 1000, 2000 * (i > 0), 0, 0) for i, kind in enumerate([0x30000, *kinds]))
    tags = struct.pack(order + "HHI4s", 0xb000, 7, 4, b"0100") + struct.pack(order + "HHII", 0xb001, 4, 1, 1 + len(kinds)) + \
        struct.pack(order + "HHII", 0xb002, 7, len(entries), 50)
    return segment(0xe2, b"MPF\0" + (b"MM\0*" if order == ">" else b"II*\0") + struct.pack(order + "IH", 8, 3) + tags + struct.pack(order + "I", 0) + entries)


def packet_of(data):
    at = data.find(XMP_NAME)
    return data[at + len(XMP_NAME):at - 2 + struct.unpack(">H", data[at - 2:at])[0]] if at > 0 else b""


def check_behind(bench, model):
    write_png(bench.path("a.png"), to_integers(picture(48, 64), np.uint8))
    bench.record("denoise", bench.path("a.png"), bench.path("a.jpg"), "--model", model)
    jpeg = bench.path("a.jpg").read_bytes()
    xmp = segment(0xe1, XMP_NAME + PACKET)
    many = jpeg[:2] + segment(0xe1, b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0" + jpeg) + jpeg[2:]  # with a thumbnail inside
    for name, data, words in (("gain", jpeg[:2] + xmp + listed([0]) + jpeg[2:] + jpeg, "second picture behind the image"),
                              ("little", jpeg[:2] + xmp + listed([0, 0x20002], "<") + jpeg[2:] + jpeg + jpeg, "2 pictures behind the image"),
                              ("unlisted", jpeg[:2] + xmp + jpeg[2:] + jpeg, "second picture behind the image"),
                              ("motion", jpeg[:2] + xmp + jpeg[2:] + FILM, "film behind the image (50 KB)"),
                              ("both", jpeg[:2] + xmp + listed([0]) + jpeg[2:] + jpeg + b"x" * 65500 + FILM, "second picture and film behind the image"),
                              ("other", jpeg[:2] + xmp + jpeg[2:] + b"SEFH" + bytes(20) + b"SEFT", "28 bytes behind the image"),
                              ("preview", jpeg[:2] + listed([0x10001, 0x10002]) + jpeg[2:] + jpeg + jpeg, None),
                              ("padding", many + bytes(3000) + b"\xff" * 9, None)):
        bench.path(f"{name}.jpg").write_bytes(data)
        for suffix in (".jpg", ".png"):
            result = bench.run("denoise", bench.path(f"{name}.jpg"), bench.path(f"{name}-out{suffix}"), "--model", model, "--json", "-")
            lost = result.record["denoise"]["files"][0].get("lost", "") if result.status == 0 else str(result)
            bench.check(words in lost and words in result.err if words else "behind" not in lost + result.err,
                        f"{name} to {suffix}: {words or 'nothing'} is named: {lost!r}, {result.err.strip()!r}")
    for name in ("gain", "motion"):
        kept = packet_of(bench.path(f"{name}-out.jpg").read_bytes()).decode()
        bench.check(len(kept) == len(PACKET) and all(word in kept for word in KEPT) and not any(word in kept for word in STATED),
                    f"{name}: XMP does not promise what is not there: {kept}")
        bench.check(kept.encode() in bench.path(f"{name}-out.png").read_bytes(), f"{name}: nor in a PNG")
    grains = to_integers(picture(96, 128) + 0.1 * np.random.default_rng(1).standard_normal((96, 128, 3)), np.uint8)
    write_png(bench.path("grains.png"), grains)
    bench.record("denoise", bench.path("grains.png"), bench.path("grains.jpg"), "--model", model)
    whole = bench.path("grains.jpg").read_bytes()
    half = len(whole) // 2
    for name, data in (("zeros", whole[:half] + bytes(len(whole) - half)), ("zeros and a thumbnail", many[:2] + segment(0xe1, jpeg) + whole[2:half] + bytes(len(whole))),
                       ("no end", whole[:-2])):
        bench.path("lost.jpg").write_bytes(data)
        bench.check_refused(bench.run("denoise", bench.path("lost.jpg"), bench.path("lost-out.jpg"), "--model", model), 1, "lost.jpg", "end marker")
    for cut in (1, 20, 300):  # a file that ends early is refused or read, never waited for
        bench.path("cut.jpg").write_bytes((jpeg[:2] + xmp + jpeg[2:])[:-cut])
        result = bench.run("denoise", bench.path("cut.jpg"), bench.path("cut-out.jpg"), "--model", model, timeout=60)
        bench.check(result.status in (0, 1), f"cut by {cut}: {result}")


def profile_of(path):
    """The profile of a JPEG, a TIFF or a PNG that this program wrote."""
    data = path.read_bytes()
    if path.suffix == ".png":
        at = data.find(b"iCCP")
        return zlib.decompress(data[at + 4 + data[at + 4:].index(b"\0") + 2:]) if at > 0 else b""
    at = data.find(b"acsp") - 36
    return data[at:at + struct.unpack(">I", data[at:at + 4])[0]] if at > 0 else b""


def tags_of(profile):
    count, found = struct.unpack(">I", profile[128:132])[0], {}
    for i in range(count):
        name, start, size = struct.unpack(">4sII", profile[132 + 12 * i:144 + 12 * i])
        assert start % 4 == 0 and start + size <= len(profile)
        found[name.decode()] = profile[start:start + size]
    return found


def meaning(profile):
    """Exponent of each curve, and the primaries' XYZ as columns."""
    tags = tags_of(profile)
    curves = [tags[name] for name in (("kTRC",) if "kTRC" in tags else ("rTRC", "gTRC", "bTRC"))]
    powers = [struct.unpack(">H", curve[12:14])[0] / 256 for curve in curves if curve[:4] == b"curv" and curve[8:12] == b"\0\0\0\1"]
    columns = [[v / 65536 for v in struct.unpack(">3i", tags[name][8:20])] for name in ("rXYZ", "gXYZ", "bXYZ") if name in tags]
    return powers, np.array(columns).T


# XYZ of the primaries under D50, as the profiles of sRGB and Display P3 that are in use have them.
SRGB_D50 = [[0.4361, 0.3851, 0.1431], [0.2225, 0.7169, 0.0606], [0.0139, 0.0971, 0.7141]]
P3_D50 = [[0.5151, 0.2920, 0.1571], [0.2412, 0.6922, 0.0666], [-0.0011, 0.0419, 0.7841]]
SRGB = (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
P3 = (31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)


def check_gamma(bench, model, gray):
    for name, channels, chunks, power, columns in (
            ("linear", 3, [("gAMA", (100000,))], 1, SRGB_D50), ("p3", 3, [("gAMA", (45455,)), ("cHRM", P3)], 2.2, P3_D50),
            ("wide", 3, [("cHRM", P3)], 2.2, P3_D50), ("gray", 1, [("gAMA", (100000,))], 1, None),
            ("usual", 3, [("gAMA", (45455,)), ("cHRM", SRGB)], None, None), ("said", 3, [("gAMA", (100000,)), ("sRGB", None)], None, None),
            ("silly", 3, [("gAMA", (100000,)), ("cHRM", (31270, 32900) + (30000, 30000) * 3)], 0, None)):
        data = to_integers(picture(24, 32, channels), np.uint8)
        source, net = bench.path(f"{name}.png"), model if channels == 3 else gray
        write_png(source, data)
        bytes_ = source.read_bytes()
        added = b"".join(png_chunk(kind.encode(), struct.pack(f">{len(numbers)}I", *numbers) if numbers else b"\0") for kind, numbers in chunks)
        source.write_bytes(bytes_[:33] + added + bytes_[33:])
        for suffix in (".jpg", ".tif", ".bmp", ".png"):
            target = bench.path(f"{name}-out{suffix}")
            result = bench.run("denoise", source, target, "--model", net, "--json", "-")
            lost = result.record["denoise"]["files"][0].get("lost", "") if result.status == 0 else str(result)
            profile = profile_of(target)
            if suffix == ".png" and name != "silly":  # libpng refuses such primaries
                bench.check(not profile and lost == "" and all(kind.encode() in target.read_bytes() for kind, _ in chunks), f"{name}: PNG to PNG as it is: {lost}")
            elif power is None:
                bench.check(not profile and "gamma" not in lost, f"{name} to {suffix}: is what programs assume: {len(profile)} bytes, {lost}")
            elif suffix == ".png":
                bench.check(result.status == 0 and not profile, f"{name}: runs: {lost}")
            elif suffix == ".bmp" or power == 0:
                bench.check(not profile and "gamma and primaries" in lost and "gamma and primaries" in result.err, f"{name} to {suffix}: a note says so: {lost}")
            elif bench.check(len(profile) > 132 and lost == "", f"{name} to {suffix}: a profile of {len(profile)} bytes, {lost!r}"):
                powers, found = meaning(profile)
                good = len(powers) == channels and all(math.isclose(p, power, abs_tol=0.003) for p in powers)
                bench.check(good and profile[16:20] == (b"GRAY" if columns is None else b"RGB "), f"{name} to {suffix}: with the gamma {powers}")
                bench.check(columns is None or np.allclose(found, columns, atol=0.0015), f"{name} to {suffix}: with the primaries {found.tolist()}")


def check_private(bench, model):
    """Layers of Photoshop, and what ImageJ keeps with an image, in a TIFF."""
    image = to_integers(picture(48, 64), np.uint8)
    layers = 37724, (2, b"Adobe Photoshop Document Data Block\0" + bytes(400000))
    imagej = [(50838, (4, struct.pack("<2I", 12, 300))), (50839, (2, b"IJIJroi " + bytes(304)))]
    for name, tags, words in (("layers", [layers], "Photoshop layers (400 KB)"), ("regions", imagej, "ImageJ data, such as regions and labels (312 bytes)"),
                              ("both", [layers, *imagej], "Photoshop layers (400 KB), ImageJ data"), ("none", [], None)):
        source = write_tiff(bench.path(f"{name}.tif"), image, 2, tags=dict(tags))
        for suffix in (".tif", ".png", ".jpg"):
            result = bench.run("denoise", source, bench.path(f"{name}-out{suffix}"), "--model", model, "--json", "-")
            lost = result.record["denoise"]["files"][0].get("lost", "") if result.status == 0 else str(result)
            bench.check(words in lost and words in result.err if words else lost == "", f"{name} to {suffix}: {words or 'nothing'} is named: {lost!r}, {result.err.strip()!r}")
    result = bench.run("denoise", bench.path("layers.tif"), bench.path("layers.tif"), "--overwrite", "--model", model)
    bench.check("Photoshop layers" in result.err, f"in place, too: {result}")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("without GDAL")
    model = write_safetensors(bench.path("color.safetensors"), dncnn(3, depth=3, width=16))
    check_behind(bench, model)
    check_private(bench, model)
    check_gamma(bench, model, write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=16)))
    bench.finish()


main()
