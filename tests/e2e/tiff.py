"""tiff.py: writes and parses TIFF files byte by byte, without GDAL's programs."""
import struct

import numpy as np

SIZES = {2: 1, 3: 2, 4: 4, 5: 8, 12: 8}
PHOTOMETRIC, EXTRA, SCALE, TIE, KEYS, ITEMS, NODATA = 262, 338, 33550, 33922, 34735, 42112, 42113
ORIGIN, STEP = (500000.0, 5000000.0), 30.0


def write_tiff(path, image, photometric=1, extra=(), **more):
    """Pixels interleaved, in one strip; `more`: items (GDAL's XML inside its root), nodata, position, mask, tags."""
    image = image[..., None] if image.ndim == 2 else image
    height, width, bands = image.shape
    shorts = lambda *values: (3, struct.pack(f"<{len(values)}H", *values))
    kind = {"u": 1, "i": 2, "f": 3}[image.dtype.kind]
    tags = {256: shorts(width), 257: shorts(height), 258: shorts(*[8 * image.itemsize] * bands), 259: shorts(1), PHOTOMETRIC: shorts(photometric),
            273: (4, struct.pack("<I", 8)), 277: shorts(bands), 278: shorts(height), 279: (4, struct.pack("<I", image.nbytes)),
            339: shorts(*[kind] * bands)}
    if extra:
        tags[EXTRA] = shorts(*extra)
    if "items" in more:
        tags[ITEMS] = 2, f"<GDALMetadata>{more['items']}</GDALMetadata>\0".encode()
    if "nodata" in more:
        tags[NODATA] = 2, more["nodata"].encode() + b"\0"
    if "position" in more:
        tags[SCALE] = 12, struct.pack("<3d", STEP, STEP, 0)
        tags[TIE] = 12, struct.pack("<6d", 0, 0, 0, *ORIGIN, 0)
        tags[KEYS] = shorts(1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632)
    tags.update(more.get("tags", {}))
    data = bytearray(b"II*\0\0\0\0\0" + image.astype(image.dtype.newbyteorder("<")).tobytes())
    link = 4

    def directory(tags):
        nonlocal link
        entries = b""
        for tag, (kind, value) in sorted(tags.items()):
            field = value.ljust(4, b"\0")
            if len(value) > 4:
                data.extend(b"\0" * (-len(data) % 8))
                field = struct.pack("<I", len(data))
                data.extend(value)
            entries += struct.pack("<HHI", tag, kind, len(value) // SIZES[kind]) + field
        data.extend(b"\0" * (-len(data) % 8))
        data[link:link + 4] = struct.pack("<I", len(data))
        data.extend(struct.pack("<H", len(tags)) + entries)
        link = len(data)
        data.extend(bytes(4))

    directory(tags)
    if "mask" in more:
        start = len(data)
        data.extend(more["mask"].astype(np.uint8).tobytes())
        directory({254: (4, struct.pack("<I", 4)), 256: shorts(width), 257: shorts(height), 258: shorts(8), 259: shorts(1), PHOTOMETRIC: shorts(4),
                   273: (4, struct.pack("<I", start)), 277: shorts(1), 278: shorts(height), 279: (4, struct.pack("<I", height * width))})
    path.write_bytes(data)
    return path


def tags_of(path):
    data = path.read_bytes()
    at, tags = struct.unpack("<I", data[4:8])[0], {}
    for i in range(struct.unpack("<H", data[at:at + 2])[0]):
        tag, kind, count, value = struct.unpack("<HHI4s", data[at + 2 + 12 * i:at + 14 + 12 * i])
        size, start = SIZES.get(kind, 1) * count, struct.unpack("<I", value)[0]
        tags[tag] = value[:size] if size <= 4 else data[start:start + size]
    return tags


def read_tiff(path):
    """Float samples of one band without compression, in strips or tiles; 0 in tiles that the file leaves out."""
    tags, data = tags_of(path), path.read_bytes()
    number = lambda tag: int.from_bytes(tags[tag], "little")
    width, height = number(256), number(257)
    across, down, starts = (number(322), number(323), 324) if 322 in tags else (width, number(278), 273)
    columns = -(-width // across)
    image = np.zeros((-(-height // down) * down, columns * across), np.float32)
    for i, start in enumerate(np.frombuffer(tags[starts], "<u4")):
        block = np.frombuffer(data[start:start + 4 * across * down], "<f4") if start else np.zeros(across * down)
        y, x = i // columns * down, i % columns * across
        rows = block.size // across  # the last strip may be short
        image[y:y + rows, x:x + across] = block[:rows * across].reshape(rows, across)
    return image[:height, :width]
