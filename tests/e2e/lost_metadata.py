"""lost_metadata.py PROGRAM: what a photograph carries and its result cannot hold is listed, by a note and in the record."""
import struct
import sys
import zlib

import numpy as np

from metadata import JPEG_XMP, TAKE, Extras, add_to_png, exif_data, segment, take_from_jpeg, take_from_png
from support import Bench, dncnn, leftovers, picture, png_chunk, skip, to_integers, write_png, write_safetensors


def lost_from(bench, model, source, target):
    """What the record and the note list."""
    record = bench.record("denoise", source, target, "--model", model)
    lost = record["denoise"]["files"][0].get("lost", "") if record else "no result"
    said = bench.run("denoise", source, target, "--model", model, "--overwrite").err
    bench.check(not lost or f"cannot hold the {lost}" in said, f"{source.name} to {target.suffix}: the note lists it, too: {said.strip()}")
    return lost


def check_unheld_texts(bench, model):
    """Texts that cannot be comments of a JPEG: metadata in hexadecimal, and more than 64 KB."""
    source, target = bench.path("raw.png"), bench.path("raw.jpg")
    raw = b"\nexif\n%8d\n" % len(exif_data("<")) + exif_data("<").hex().encode() + b"\n"
    exif, iptc = (b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw)), (b"tEXt", b"Raw profile type iptc\0\niptc\n       4\n1c020000\n")
    long_text, packed = (b"tEXt", b"workflow\0" + b"node " * 16800), (b"zTXt", b"prompt\0\0" + zlib.compress(bytes(70000)))
    cut, kept = (b"zTXt", b"cut\0\0" + zlib.compress(b"words " * 99)[:-20]), (b"tEXt", b"Comment\0kept")
    many = "texts that are damaged or over 64 KB"
    for texts, own, words in (([exif, kept], None, "raw profiles in texts (exif)"), ([exif, kept], exif_data("<"), ""), ([exif, iptc, iptc, kept], None, "raw profiles in texts (exif, iptc)"),
                              ([long_text, kept], None, many), ([packed, kept], None, many), ([cut, kept], None, many),
                              ([kept, (b"tEXt", b"Raw profile type \xff\n\0x"), long_text], None, "raw profiles in texts (other), " + many), ([kept, (b"tEXt", b"Raw profile type ")], None, many)):
        write_png(source, to_integers(picture(24, 31), np.uint8))
        add_to_png(source, Extras(own, texts=texts))
        target.unlink(missing_ok=True)
        lost = lost_from(bench, model, source, target)
        bench.check(lost == words and (0xfe, b"kept") in take_from_jpeg(target).texts, f"{texts[0][1][:22]} to JPEG: lost: {lost}")
        bench.path("raw-out.png").unlink(missing_ok=True)
        lost = lost_from(bench, model, source, bench.path("raw-out.png"))
        bench.check(not lost and take_from_png(bench.path("raw-out.png")).texts == texts, f"{texts[0][1][:22]} to PNG: all is kept {lost}")


def check_segments(bench, model):
    """Data of other programs in a JPEG's head."""
    plain, source, target = bench.path("plain.jpg"), bench.path("thermal.jpg"), bench.path("thermal-out.jpg")
    if not plain.exists():
        bench.record("denoise", bench.path("plain.png"), plain, "--model", model)
    flir = b"".join(segment(0xe1, b"FLIR\0\1" + bytes([i, 1]) + b"\7" * 60000) for i in range(2))
    thermal, others = "thermal data of a FLIR camera (120 KB)", "data of other programs ({})"
    harmless = segment(0xe2, b"FPXR\0" + b"x" * 40) + segment(0xec, b"Ducky\0\1") + segment(0xee, b"Adobe\0d\0\0\0\0\1") + segment(0xe4, bytes(500)) + segment(0xef, b"Q 95") + segment(
        0xeb, b"JP\0\1\0\0\0\1\0\0\0\x40jumb" + b"signed " * 9) + segment(0xe0, b"JFXX\0\x13")
    for head, words in ((flir, thermal), (segment(0xe3, b"\1\2" * 3000), others.format("APP3: 6 KB")), (harmless, ""), (segment(0xe1, b""), ""), (segment(0xea, b"ten") + segment(0xe1, b"one"), others.format("APP10, APP1: 6 bytes")), (segment(0xe1, b"FLIR"), others.format("APP1: 4 bytes")),
                        (flir + harmless + segment(0xe3, b"x" * 90) * 2 + segment(0xe7, b"y" * 20), f"{thermal}, {others.format('APP3, APP7: 200 bytes')}"),
                        (b"".join(segment(m, b"z" * 10) for m in (*range(0xe1, 0xed), 0xee, 0xef)), others.format("APP1, APP2, APP3, APP4, APP5, APP6, ...: 140 bytes"))):
        data = plain.read_bytes()
        source.write_bytes(data[:2] + head + data[2:])
        for to in (target, bench.path("thermal-out.png")):
            to.unlink(missing_ok=True)
            lost = lost_from(bench, model, source, to)
            bench.check(lost == words, f"segments {head[4:12]} to {to.suffix}: lost: {lost}")


def check_chunks(bench, model):
    """Chunks that only a PNG can hold go to PNG; private ones are listed."""
    source, target = bench.path("chunks.png"), bench.path("chunks-out.png")
    only = [(b"pCAL", b"height\0" + struct.pack(">iiBB", 0, 255, 0, 2) + b"m\0" + b"0\0" + b"100"), (b"sCAL", b"\1" + b"0.5\0" + b"0.5"), (b"oFFs", struct.pack(">iiB", 20, -30, 0)),
            (b"mDCV", struct.pack(">8HII", *range(1, 9), 10000000, 50)), (b"cLLI", struct.pack(">II", 10000000, 4000000)), (b"sTER", b"\1")]
    known, private = [(b"tIME", bytes([7, 232, 1, 2, 3, 4, 5])), (b"iDOT", bytes(28))], [(b"npTc", b"stretch"), (b"prVt", b"x" * 2000)]
    words = "PNG chunks pCAL, sCAL, oFFs, mDCV, cLLI, sTER"
    for late in (False, True):
        write_png(source, to_integers(picture(24, 31), np.uint8))
        add_to_png(source, Extras(texts=only + known + only[2:3]), late)
        target.unlink(missing_ok=True)
        lost, data = lost_from(bench, model, source, target), target.read_bytes()
        bench.check(not lost and all(data.count(png_chunk(*chunk)) == 1 and data.index(png_chunk(*chunk)) < data.index(b"IDAT") for chunk in only), f"chunks go from PNG to PNG, once {lost}")
    for suffix in (".jpg", ".tif", ".npy"):
        lost = lost_from(bench, model, source, bench.path("chunks-out" + suffix))
        bench.check(lost == words, f"chunks to {suffix}: lost: {lost}")
    bench.check(not take_from_jpeg(bench.path("chunks-out.jpg")).texts, "they are no texts")
    add_to_png(source, Extras(texts=private + [(b"abcd", b"")]))
    lost = lost_from(bench, model, source, bench.path("private.png"))
    bench.check(lost == "data of other programs (npTc, prVt, abcd: 2 KB)", f"private chunks: lost: {lost}")


def check_extended_xmp(bench, model):
    """XMP beyond 64 KB: a JPEG has it in more segments, which no other format can hold."""
    source, note = bench.path("long.jpg"), b" xmlns:xmpNote='http://ns.adobe.com/xmp/note/' xmpNote:HasExtendedXMP='" + b"5" * 32 + b"'"
    packet = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:Description" + note + b"/>one</x:xmpmeta>"
    parts = [segment(0xe1, b"http://ns.adobe.com/xmp/extension/\0" + b"5" * 32 + struct.pack(">II", 100000, at) + b"<a/>" * 12500) for at in (0, 50000)]
    bench.record("denoise", bench.path("plain.png"), source, "--model", model)
    data = source.read_bytes()
    source.write_bytes(data[:2] + segment(0xe1, JPEG_XMP + packet) + b"".join(parts) + data[2:])
    target = bench.path("long-out.jpg")
    lost = lost_from(bench, model, source, target)
    bench.check(not lost and take_from_jpeg(target).xmp == packet and all(part in target.read_bytes() for part in parts), f"extended XMP goes from JPEG to JPEG {lost}")
    for suffix in (".png", ".tif"):
        target = bench.path("long-out" + suffix)
        lost, xmp = lost_from(bench, model, source, target), TAKE[suffix](target).xmp
        bench.check(lost == "extended XMP", f"extended XMP to {suffix}: lost: {lost}")
        bench.check(xmp and b"HasExtended" not in xmp and len(xmp) == len(packet) and xmp.endswith(packet[-15:]), f"{suffix} does not point at what is lost: {xmp}")
    large = bench.path("large.png")
    write_png(large, to_integers(picture(24, 31), np.uint8))
    add_to_png(large, Extras(xmp=b"<x:xmpmeta>" + b"<a/>" * 20000 + b"</x:xmpmeta>"))
    lost = lost_from(bench, model, large, bench.path("large.jpg"))
    bench.check(lost == "XMP packet", f"a packet over 64 KB does not go into a JPEG: lost: {lost}")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("built without GDAL")
    model = write_safetensors(bench.path("color.safetensors"), dncnn(3, depth=3, width=16))
    write_png(bench.path("plain.png"), to_integers(picture(24, 31), np.uint8))
    check_unheld_texts(bench, model)
    check_extended_xmp(bench, model)
    check_segments(bench, model)
    check_chunks(bench, model)
    bench.check(not leftovers(bench.folder), "no temporary file is left")
    bench.finish()


main()
