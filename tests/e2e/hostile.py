"""hostile.py PROGRAM [COUNT] [SEED]: damaged files end in status 0, or in an error of one line, never in a signal.

Random byte flips and truncations of PNG, NPY, safetensors and .pth files, passed to denoise and convert. In half of the
damaged PNGs the checksums are corrected, so that the damage is not caught by them. In a sanitized build any finding ends
the program with status 99.
"""
import random
import struct
import sys
import zlib

import numpy as np

from support import (LEAKS, Bench, dncnn, drunet, leftovers, picture, to_integers, unet, write_png, write_pth, write_safetensors)


def right_checksums(data):
    """A PNG with the checksum of every chunk made to fit."""
    out, at = bytearray(data), 8
    while at + 12 <= len(out):
        length = struct.unpack(">I", out[at:at + 4])[0]
        if at + 12 + length > len(out):
            break
        out[at + 8 + length:at + 12 + length] = struct.pack(">I", zlib.crc32(out[at + 4:at + 8 + length]))
        at += 12 + length
    return bytes(out)


def damage(rng, data, head):
    """Flips in the first `head` bytes (where the structure is) or anywhere, or an end that is missing."""
    data = bytearray(data)
    kind = rng.choice(["head", "head", "anywhere", "cut", "both"])
    if kind in ("head", "both"):
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(min(head, len(data)))] = rng.randrange(256)
    if kind in ("anywhere", "both"):
        for _ in range(rng.randint(1, 16)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if kind in ("cut", "both"):
        del data[rng.choice([0, rng.randrange(64), rng.randrange(len(data))]):]
    return kind, bytes(data)


def originals(bench):
    """suffix, bytes, how many of them are structure, and how the file is used"""
    made = []

    def add(name, head, use):
        made.append((name, bench.path(name).read_bytes(), head, use))

    write_png(bench.path("color8.png"), to_integers(picture(61, 47), np.uint8))
    write_png(bench.path("gray16.png"), to_integers(picture(33, 50, 1), np.uint16))
    np.save(bench.path("float.npy"), picture(40, 30))
    np.save(bench.path("bytes.npy"), to_integers(picture(40, 30), np.uint8))
    write_safetensors(bench.path("dncnn.safetensors"), dncnn(3, depth=3, width=8))
    write_safetensors(bench.path("drunet.safetensors"), drunet(3, widths=(8, 8, 8, 8)))
    write_safetensors(bench.path("unet.safetensors"), unet(3, widths=(8, 8, 8, 8)))
    write_pth(bench.path("zip.pth"), dncnn(3, depth=3, width=8))
    write_pth(bench.path("legacy.pth"), dncnn(3, depth=3, width=8), legacy=True)
    for name, head in (("color8.png", 60), ("gray16.png", 60), ("float.npy", 128), ("bytes.npy", 128)):
        add(name, head, "image")
    for name, head in (("dncnn.safetensors", 600), ("drunet.safetensors", 3000), ("unet.safetensors", 5000), ("zip.pth", 1500),
                       ("legacy.pth", 1500)):
        add(name, head, "model")
        if not name.startswith("drunet"):
            add(name, head, "convert")
    return made


def main():
    bench = Bench(sys.argv[1])
    count, rng = int(sys.argv[2]) if len(sys.argv) > 2 else 600, random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    known = originals(bench)
    image, model = bench.path("color8.png"), bench.path("dncnn.safetensors")
    gray = write_safetensors(bench.path("gray.safetensors"), dncnn(1, depth=3, width=8))
    out = bench.path("out")
    out.mkdir()
    told = {0: 0, 1: 0}
    for i in range(count):
        name, data, head, use = known[i % len(known)]
        kind, bad = damage(rng, data, head)
        if name.endswith(".png") and rng.random() < 0.5:
            kind, bad = kind + ", checksums right", right_checksums(bad)
        source = bench.path("bad." + name.split(".")[1])
        source.write_bytes(bad)
        target = out / ("w.safetensors" if use == "convert" else "o.npy")
        if use == "convert":
            args = ("convert", source, target)
        elif use == "image":
            args = ("denoise", source, target, "--model", gray if "gray" in name else model, "--memory", "200M")
        else:
            args = ("denoise", image, target, "--model", source, "--sigma", "0.1", "--memory", "200M")
        result = bench.run(*args, "--quiet", timeout=300, env=LEAKS if i % 60 == 0 else None)
        made = [p.name for p in out.iterdir()]
        # Damage may leave a sound file whose samples have no scale: then the range is asked for, which is wrong usage.
        refused = result.status == 1 or (result.status == 2 and "--range" in result.err)
        good = (result.status == 0 and made == [target.name]) or (refused and len(result.lines) == 1 and not made)
        told[result.status] = told.get(result.status, 0) + 1
        if not bench.check(good, f"{use} {name} {i} ({kind}): status {result.status}, {len(result.lines)} line(s), made {made}"):
            print(result.err[-3000:])
            kept = bench.folder.parent / f"tessera-hostile-{i}.{name.split('.')[1]}"
            kept.write_bytes(bad)
            print(f"the file is kept as {kept}")
        for path in out.iterdir():
            path.unlink()
    bench.check(told[1] > count // 3, f"of {count} files {told[1]} were refused and {told[0]} were still good enough")
    bench.check(not leftovers(bench.folder), "no temporary file is left")
    bench.finish()


main()
