"""metadata.py PROGRAM: EXIF data, profile, XMP, texts and resolution are copied from PNG, JPEG and TIFF to each of these.

Files are written and parsed here byte by byte, without the libraries that the program uses."""
import math
import struct
import sys
import zlib

import numpy as np

from support import Bench, dncnn, leftovers, picture, png_chunk, read_png, to_integers, write_png, write_safetensors

JPEG_EXIF, JPEG_XMP, JPEG_ICC = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0", b"ICC_PROFILE\0"
XMP_KEY = b"XML:com.adobe.xmp"
XMP = b"<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'>r\xc3\xa9</x:xmpmeta>"
NOTE = bytes(range(256)) + b"maker's own\0\xff\xd8"
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 16: 8}


# --- TIFF directories, as EXIF data and TIFF files have them -----------------------------------------------------------

def directory(order, base, tags, wide=False, below=None):
    """Bytes from `base` on. `tags`: id -> (type, bytes), numbers already in `order`; `below`: id -> tags."""
    below = below or {}
    head, entry, field = (8, 20, "Q") if wide else (2, 12, "I")
    room = 8 if wide else 4
    ids = sorted([*tags, *below])
    at = base + head + entry * len(ids) + room
    entries, values = b"", b""
    for tag in ids:
        if tag in below:
            kind, count, value = 4, 1, struct.pack(order + "I", at + len(values)).ljust(room, b"\0")
            values += directory(order, at + len(values), below[tag], wide)
        else:
            kind, data = tags[tag]
            count = len(data) // SIZES[kind]
            value = data.ljust(room, b"\0")
            if len(data) > room:
                value = struct.pack(order + field, at + len(values))
                values += data + b"\0" * (len(data) % 2)
        entries += struct.pack(order + "HH" + field, tag, kind, count) + value
    return struct.pack(order + ("Q" if wide else "H"), len(ids)) + entries + struct.pack(order + field, 0) + values


def photo_tags(order, orientation=6):
    tags = {271: (2, b"A camera maker\0"), 274: (3, struct.pack(order + "H", orientation)), 306: (2, b"2024:01:02 03:04:05\0")}
    code = "utf-16-le" if order == "<" else "utf-16-be"
    below = {34665: {33434: (5, struct.pack(order + "II", 1, 125)), 37500: (7, NOTE), 37510: (7, b"UNICODE\0" + "日本 é".encode(code))},
             34853: {27: (7, b"UNICODE\0\xff\xfe" + "marked".encode("utf-16-le")), 28: (7, b"ASCII\0\0\0Bern"), 1: (2, b"N\0"), 2: (5, struct.pack(order + "6I", 47, 1, 22, 1, 5, 10))}}
    return tags, below


def exif_data(order, orientation=6):
    tags, below = photo_tags(order, orientation)
    magic = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    return magic + directory(order, 8, tags, below=below) + b"and bytes that no directory names"


def read_directory(data, offset=None):
    """id -> (type, bytes in little endian), ids of directories below as dictionaries."""
    order, wide = ("<" if data[:2] == b"II" else ">"), struct.unpack(("<" if data[:2] == b"II" else ">") + "H", data[2:4])[0] == 43
    if offset is None:
        offset = struct.unpack(order + "Q", data[8:16])[0] if wide else struct.unpack(order + "I", data[4:8])[0]
    head, entry, field, room = (8, 20, "Q", 8) if wide else (2, 12, "I", 4)
    count = struct.unpack(order + ("Q" if wide else "H"), data[offset:offset + head])[0]
    tags, ids = {}, []
    for i in range(count):
        at = offset + head + i * entry
        tag, kind, many = struct.unpack(order + "HH" + field, data[at:at + 4 + room])
        ids.append(tag)
        value, size = data[at + 4 + room:at + entry], SIZES.get(kind, 0) * many
        if tag in (34665, 34853):
            tags[tag] = read_directory(data, struct.unpack(order + ("Q" if kind == 16 else "I"), value[:8 if kind == 16 else 4])[0])
            continue
        if size > room:
            start = struct.unpack(order + field, value)[0]
            value = data[start:start + size]
        number = {3: 2, 4: 4, 5: 4, 16: 8}.get(kind, 1)
        value = value[:size]
        if order == ">" and value.startswith(b"UNICODE\0") and value[8:10] != b"\xff\xfe":
            value = value[:8] + value[8:].decode("utf-16-be").encode("utf-16-le")
        if order == ">" and number > 1:
            value = b"".join(value[j:j + number][::-1] for j in range(0, size, number))
        tags[tag] = (kind, value)
    assert ids == sorted(ids), ids
    return tags


# --- the three formats: (exif, icc, xmp, texts, pixels a metre) ----------------------------------------------------------

class Extras:
    def __init__(self, exif=None, icc=None, xmp=None, texts=(), density=None):
        self.exif, self.icc, self.xmp, self.texts, self.density = exif, icc, xmp, list(texts), density


def add_to_png(path, extras, late=False):
    data = path.read_bytes()
    first = png_chunk(b"pHYs", struct.pack(">IIB", *[round(extras.density)] * 2, 1)) if extras.density else b""
    first += png_chunk(b"iCCP", b"a profile\0\0" + zlib.compress(extras.icc)) if extras.icc else b""
    rest = png_chunk(b"eXIf", extras.exif) if extras.exif else b""
    rest += png_chunk(b"iTXt", XMP_KEY + b"\0\1\0\0\0" + zlib.compress(extras.xmp)) if extras.xmp else b""
    rest += b"".join(png_chunk(kind, body) for kind, body in extras.texts)
    end = len(data) - 12 if late else 33
    path.write_bytes(data[:33] + first + data[33:end] + rest + data[end:])


def take_from_png(path):
    data, at, found = path.read_bytes(), 8, Extras()
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], kind
        if kind == b"eXIf":
            found.exif = body
        elif kind == b"iCCP":
            found.icc = zlib.decompress(body[body.index(b"\0") + 2:])
        elif kind == b"pHYs" and body[8] == 1:
            found.density = struct.unpack(">I", body[:4])[0]
        elif kind == b"iTXt" and body.startswith(XMP_KEY + b"\0"):
            found.xmp = body[len(XMP_KEY) + 5:]
        elif kind in (b"tEXt", b"zTXt", b"iTXt"):
            found.texts.append((kind, body))
        at += 12 + length
    return found


def segment(marker, body):
    return struct.pack(">BBH", 0xff, marker, len(body) + 2) + body


def add_to_jpeg(path, extras, comment=None):
    data = path.read_bytes()
    head = b""
    if extras.density:
        head += segment(0xe0, b"JFIF\0\1\1\1" + struct.pack(">HHBB", *[round(extras.density * 0.0254)] * 2, 0, 0))
    head += segment(0xe1, JPEG_EXIF + extras.exif) if extras.exif else b""
    head += segment(0xe1, JPEG_XMP + extras.xmp) if extras.xmp else b""
    parts = [extras.icc[i:i + 60000] for i in range(0, len(extras.icc), 60000)] if extras.icc else []
    head += b"".join(segment(0xe2, JPEG_ICC + bytes([i + 1, len(parts)]) + part) for i, part in enumerate(parts))
    head += segment(0xed, b"Photoshop 3.0\0IPTC of some sort")
    head += segment(0xfe, comment) if comment else b""
    at = 2
    while data[at + 1] == 0xe0:  # replaced by ours
        at += 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
    path.write_bytes(data[:2] + head + data[at:])


def take_from_jpeg(path):
    data, at, found, parts = path.read_bytes(), 2, Extras(), {}
    while data[at + 1] != 0xda:
        assert data[at] == 0xff
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2:at + 4])[0]
        body = data[at + 4:at + 2 + length]
        if marker == 0xe0 and body.startswith(b"JFIF\0") and body[7]:
            found.density = struct.unpack(">H", body[8:10])[0] / (0.0254 if body[7] == 1 else 0.01)
        elif marker == 0xe1 and body.startswith(JPEG_EXIF):
            assert found.exif is None, "two segments of EXIF data"
            found.exif = body[6:]
        elif marker == 0xe1 and body.startswith(JPEG_XMP):
            found.xmp = body[len(JPEG_XMP):]
        elif marker == 0xe2 and body.startswith(JPEG_ICC):
            assert body[12] not in parts, "two profiles"
            parts[body[12]] = body[14:]
        elif marker in (0xed, 0xfe):
            found.texts.append((marker, body))
        at += 2 + length
    found.icc = b"".join(parts[i] for i in sorted(parts)) or None
    return found


WHITE, PRIMARIES = (3127, 10000, 329, 1000), (64, 100, 33, 100, 3, 10, 6, 10, 15, 100, 6, 100)  # of sRGB


def write_tiff(path, image, extras, order="<", wide=False):
    tags, below = photo_tags(order)
    height, width, _ = image.shape
    pixels = image.tobytes()
    short, long_ = order + "H", order + "I"
    tags.update({256: (4, struct.pack(long_, width)), 257: (4, struct.pack(long_, height)), 258: (3, struct.pack(order + "3H", 8, 8, 8)),
                 259: (3, struct.pack(short, 1)), 262: (3, struct.pack(short, 2)), 273: (4, struct.pack(long_, 16)),
                 277: (3, struct.pack(short, 3)), 278: (4, struct.pack(long_, height)), 279: (4, struct.pack(long_, len(pixels))),
                 282: (5, struct.pack(order + "II", 300, 1)), 283: (5, struct.pack(order + "II", 300, 1)), 284: (3, struct.pack(short, 1)),
                 296: (3, struct.pack(short, 2)), 315: (2, b"An artist\0"), 318: (5, struct.pack(order + "4I", *WHITE)),
                 319: (5, struct.pack(order + "12I", *PRIMARIES)), 700: (1, extras.xmp), 34675: (7, extras.icc)})
    start = 16 + len(pixels) + len(pixels) % 2
    head = (b"II" if order == "<" else b"MM") + (struct.pack(order + "HHHQ", 43, 8, 0, start) if wide else struct.pack(order + "HI", 42, start))
    path.write_bytes((head.ljust(16, b"\0") + pixels).ljust(start, b"\0") + directory(order, start, tags, wide, below))


def take_from_tiff(path):
    data = path.read_bytes()
    tags = read_directory(data)
    found = Extras(exif=tags, icc=tags.get(34675, (0, None))[1], xmp=tags.get(700, (0, None))[1])
    if 282 in tags:
        above, under = struct.unpack("<II", tags[282][1])
        found.density = above / under / (0.0254 if tags[296][1][0] == 2 else 0.01)
    return found


TAKE = {".png": take_from_png, ".jpg": take_from_jpeg, ".tif": take_from_tiff}


def profile(bytes_, space=b"RGB "):
    """What libpng takes for one: a header without tags, and bytes that deflate cannot shrink."""
    data = bytearray(np.random.default_rng(3).integers(0, 256, bytes_, np.uint8).tobytes())
    data[:132] = bytes(132)
    data[0:4] = struct.pack(">I", bytes_)
    data[8] = 2
    data[12:24] = b"mntr" + space + b"XYZ "
    data[36:40] = b"acsp"
    data[68:80] = bytes.fromhex("0000f6d6000100000000d32d")
    return bytes(data)


# --- checks --------------------------------------------------------------------------------------------------------------

def same_photo(tags):
    """The tags of photo_tags, whatever the byte order was."""
    wanted, below = photo_tags("<")
    return all(tags.get(k) == v for k, v in wanted.items()) and all(
        isinstance(tags.get(k), dict) and all(tags[k].get(t) == v for t, v in part.items()) for k, part in below.items())


def check_matrix(bench, model, image, sources, targets):
    for name, extras in sources:
        for suffix in targets:
            target = bench.path("out" + suffix)
            target.unlink(missing_ok=True)
            if bench.record("denoise", bench.path(name), target, "--model", model, "--sigma", "0") is None:
                continue
            found, step = TAKE[suffix](target), f"{name} to {suffix}"
            verbatim = suffix != ".tif" and not name.endswith(".tif")
            tags = found.exif if suffix == ".tif" else read_directory(found.exif) if found.exif else {}
            bench.check(same_photo(tags), f"{step}: EXIF data with orientation, position and maker note")
            if verbatim:
                bench.check(found.exif == extras.exif, f"{step}: EXIF data is the same bytes")
            bench.check(found.icc == extras.icc, f"{step}: profile of {len(extras.icc)} bytes ({found.icc and len(found.icc)})")
            bench.check(found.xmp == extras.xmp, f"{step}: XMP")
            bench.check(found.density and math.isclose(found.density, 11811, rel_tol=1e-3), f"{step}: resolution {found.density}")
            if suffix == ".png":
                bench.check(read_png(target).shape == image.shape, f"{step}: the pixels lie as they were stored")


def check_texts(bench, model):
    source, long_text = bench.path("texts.png"), b"many words " * 3000
    texts = [(b"tEXt", b"Title\0A title"), (b"zTXt", b"Description\0\0" + zlib.compress(long_text)),
             (b"iTXt", b"Author\0\0\0\0\0" + "Zoë".encode()), (b"tEXt", b"Comment\0said once")]
    write_png(source, to_integers(picture(24, 31), np.uint8))
    add_to_png(source, Extras(texts=texts), late=True)
    bench.record("denoise", source, bench.path("t.png"), "--model", model)
    bench.check(take_from_png(bench.path("t.png")).texts == texts, "PNG texts of all kinds go to PNG, also from behind the pixels")
    bench.record("denoise", source, bench.path("t.jpg"), "--model", model)
    found = take_from_jpeg(bench.path("t.jpg")).texts
    bench.check(found == [(0xfe, b"Title: A title"), (0xfe, b"Description: " + long_text), (0xfe, "Author: Zoë".encode()), (0xfe, b"said once")],
                f"PNG texts become comments of a JPEG: {[t[1][:30] for t in found]}")
    said = bench.run("denoise", source, bench.path("t.tif"), "--model", model).err
    bench.check("cannot hold the texts" in said, f"a TIFF has no place for them: {said.strip()}")
    bench.record("denoise", bench.path("t.jpg"), bench.path("u.png"), "--model", model)
    found = take_from_png(bench.path("u.png")).texts
    bench.check((b"tEXt", b"Comment\0Title: A title") in found and (b"iTXt", b"Comment\0\0\0\0\0" + "Author: Zoë".encode()) in found,
                f"comments of a JPEG become PNG texts: {[t[1][:30] for t in found]}")
    wrong = source.read_bytes().replace(b"A title", b"B title")
    source.write_bytes(wrong)
    bench.record("denoise", source, bench.path("t.png"), "--model", model)
    bench.check(take_from_png(bench.path("t.png")).texts == texts[1:], "a text with a wrong checksum is left out, the others stay")


def check_named(bench, model):
    """Arrays and BMP hold none of it, and the record names all; the background goes from PNG to PNG."""
    source = bench.path("named.png")
    write_png(source, to_integers(picture(24, 31), np.uint8))
    add_to_png(source, Extras(exif_data("<"), profile(432), XMP, density=11811, texts=[(b"bKGD", bytes(range(6)))]))
    for suffix in (".npy", ".bmp") if bench.has_gdal() else (".npy",):
        lost = bench.record("denoise", source, bench.path("named" + suffix), "--model", model)["denoise"]["files"][0].get("lost", "")
        bench.check(all(part in lost for part in ("orientation 6", "colour profile", "other EXIF data", "XMP packet", "resolution", "background colour")),
                    f"PNG to {suffix}: {lost}")
    record = bench.record("denoise", source, bench.path("named-out.png"), "--model", model)
    bench.check("lost" not in record["denoise"]["files"][0] and b"bKGD" + bytes(range(6)) in bench.path("named-out.png").read_bytes(), "a background colour goes from PNG to PNG")


def check_profile(bench, model, gray):
    write_png(bench.path("g.png"), to_integers(picture(24, 31, 1), np.uint8))
    add_to_png(bench.path("g.png"), Extras(icc=profile(432)))
    for suffix in (".png", ".jpg", ".tif"):
        target = bench.path("g-out" + suffix)
        record = bench.record("denoise", bench.path("g.png"), target, "--model", gray)
        lost = record["denoise"]["files"][0].get("lost", "")
        bench.check(TAKE[suffix](target).icc is None and lost == "colour profile (it does not fit a gray image)", f"a profile of colours does not go into a gray {suffix}: {lost}")
    damaged = bytearray(profile(432))
    damaged[36:40] = b"none"  # the signature of all profiles, without which libpng takes none
    write_png(bench.path("plain.png"), to_integers(picture(24, 31, 3), np.uint8))
    bench.record("denoise", bench.path("plain.png"), bench.path("d.jpg"), "--model", model)
    add_to_jpeg(bench.path("d.jpg"), Extras(icc=bytes(damaged)))
    record = bench.record("denoise", bench.path("d.jpg"), bench.path("d-out.png"), "--model", model)
    lost = record["denoise"]["files"][0].get("lost", "")
    bench.check(take_from_png(bench.path("d-out.png")).icc is None and "colour profile (it is damaged)" in lost, f"a damaged profile is named: {lost}")


def check_tiff_tags(bench, model, image):
    """What a TIFF keeps besides: its texts, and one directory after another."""
    write_tiff(bench.path("x.tif"), image, Extras(icc=profile(432), xmp=XMP))
    bench.record("denoise", bench.path("x.tif"), bench.path("y.tif"), "--model", model)
    tags = read_directory(bench.path("y.tif").read_bytes())
    bench.check(tags[315] == (2, b"An artist\0") and tags[274][1] == b"\x06\0", f"TIFF to TIFF keeps artist and orientation")
    bench.check(tags[318] == (5, struct.pack("<4I", *WHITE)) and tags[319] == (5, struct.pack("<12I", *PRIMARIES)), "and the white point and the primaries")
    bench.record("denoise", bench.path("y.tif"), bench.path("z.tif"), "--model", model)
    bench.check(same_photo(read_directory(bench.path("z.tif").read_bytes())), "and so does the TIFF that was written")
    bench.record("denoise", bench.path("y.tif"), bench.path("z.npy"), "--model", model)
    bench.check(np.load(bench.path("z.npy")).shape == image.shape, "a TIFF with its new directory is read as an image")


def main():
    bench = Bench(sys.argv[1])
    weights = dncnn(3, depth=3, width=16)
    model = write_safetensors(bench.path("color.safetensors"), weights)
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=16))
    image = to_integers(picture(40, 53), np.uint8)
    rasters = bench.has_gdal()
    big, small = profile(150000), profile(432)
    sources = []
    flat = small[:132] + bytes(150000 - 132)  # deflates to less than the file's other chunks have
    flat = struct.pack(">I", len(flat)) + flat[4:]
    for name, order, icc, late in (("a.png", "<", small, False), ("b.png", ">", big, True), ("c.png", "<", flat, True)):
        extras = Extras(exif_data(order), icc, XMP, density=11811)
        write_png(bench.path(name), image)
        add_to_png(bench.path(name), extras, late)
        sources.append((name, extras))
    if rasters:
        write_png(bench.path("plain.png"), image)
        for name, order, icc in (("c.jpg", ">", small), ("d.jpg", "<", big)):
            bench.record("denoise", bench.path("plain.png"), bench.path(name), "--model", model)
            extras = Extras(exif_data(order), icc, XMP, density=11811)
            add_to_jpeg(bench.path(name), extras, b"a comment")
            sources.append((name, extras))
        for name, order, wide in (("e.tif", "<", False), ("f.tif", ">", False), ("g.tif", "<", True)):
            extras = Extras(None, small, XMP, density=11811)
            write_tiff(bench.path(name), image, extras, order, wide)
            sources.append((name, extras))
    check_matrix(bench, model, image, sources, (".png", ".jpg", ".tif") if rasters else (".png",))
    if rasters:
        check_texts(bench, model)
        check_profile(bench, model, gray)
        check_tiff_tags(bench, model, image)
        bench.record("denoise", bench.path("c.jpg"), bench.path("h.jpg"), "--model", model)
        said = bench.run("denoise", bench.path("c.jpg"), bench.path("h.png"), "--model", model).err
        bench.check("cannot hold the IPTC data" in said, f"a PNG has no place for IPTC: {said.strip()}")
        found = take_from_jpeg(bench.path("h.jpg")).texts
        bench.check(found == [(0xed, b"Photoshop 3.0\0IPTC of some sort"), (0xfe, b"a comment")], f"JPEG to JPEG keeps IPTC and comment: {found}")
    bench.check(not leftovers(bench.folder), "no temporary file is left")
    check_named(bench, model)
    bench.finish()


if __name__ == "__main__":  # lost_metadata.py takes the formats from here
    main()
