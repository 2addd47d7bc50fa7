"""photographs.py PROGRAM: what telephones put behind a JPEG's image is named when it is lost; colour spaces that a PNG gives by numbers become profiles."""
import math
import pathlib
import struct
import sys
import zlib

import numpy as np

from support import Bench, dncnn, picture, png_chunk, skip, to_integers, write_png, write_safetensors

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
    for cut in (1, 20, 300):  # a file that ends early is refused or read, never waited for
        bench.path("cut.jpg").write_bytes((jpeg[:2] + xmp + jpeg[2:])[:-cut])
        result = bench.run("denoise", bench.path("cut.jpg"), bench.path("cut-out.jpg"), "--model", model, timeout=60)
        bench.check(result.status in (0, 1), f"cut by {cut}: {result}")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("without GDAL")
    model = write_safetensors(bench.path("color.safetensors"), dncnn(3, depth=3, width=16))
    check_behind(bench, model)
    bench.finish()


main()
