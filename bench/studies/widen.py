"""Makes a DRUNet of full width (64/128/256/512, 4 blocks per stage) that computes what a small one computes.

    python bench/studies/widen.py models/drunet-color-tiny.safetensors wide.safetensors

Speed and memory are specified for full-width networks, but published weights of that size may not be distributed, and
the output of random weights cannot be checked. Here the small network occupies the leading channels. The
others have random weights and read all channels, so that the arithmetic is on real numbers, but they do not affect the
leading channels: the weights from them into these are zero, and blocks that the small network does not have add
nothing to them. So the denoised image is the small network's, up to rounding. Written as fp16. A network of more blocks,
such as drunet-color-small, has no place in it.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np

WIDTHS = (64, 128, 256, 512)
BLOCKS = 4
TYPES = {"F16": "<f2", "F32": "<f4"}


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    facts = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"]).astype(np.float32)
    return arrays, facts


def write_safetensors(path, arrays, facts):
    header, at = {"__metadata__": facts}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


class Widener:
    def __init__(self, small, seed=1):
        self.small, self.wide, self.rng = small, {}, np.random.default_rng(seed)

    def put(self, name, out, inside, kernel, gain, transposed=False):
        """`gain` 2 keeps the variance behind a ReLU, 1 without one."""
        fan = inside if transposed else inside * kernel * kernel
        weights = self.rng.standard_normal((out, inside, kernel, kernel), np.float32) * np.float32(math.sqrt(gain / fan))
        old = self.small.get(name)
        if old is not None:
            old = old.transpose(1, 0, 2, 3) if transposed else old
            weights[:old.shape[0]] = 0
            weights[:old.shape[0], :old.shape[1]] = old
        weights = weights.transpose(1, 0, 2, 3) if transposed else weights
        self.wide[name] = np.ascontiguousarray(weights, "<f2")

    def blocks(self, stage, width, real, first):
        for i in range(first, first + BLOCKS):
            for place, gain in (("res.0", 2), ("res.2", 0.01)):  # the sum over many blocks must stay within fp16
                self.put(f"{stage}.{i}.{place}.weight", width, width, 3, gain)
            if f"{stage}.{i}.res.2.weight" not in self.small:
                self.wide[f"{stage}.{i}.res.2.weight"][:real] = 0


def widen(small):
    """Name -> fp16 array. Layers keep the order of the network."""
    w, names = Widener(small), ("m_down1", "m_down2", "m_down3")
    channels, real = small["m_tail.weight"].shape[0], []
    for stage in names:  # the down-sampling layer follows the last block
        last = max(int(name.split(".")[1]) for name in small if name.startswith(stage))
        real.append(small[f"{stage}.{last}.weight"].shape[1])
        down = small.pop(f"{stage}.{last}.weight")
        small[f"{stage}.{BLOCKS}.weight"] = down
    real.append(down.shape[0])
    if any(a > b for a, b in zip(real, WIDTHS)) or any(".bias" in name for name in small):
        raise SystemExit(f"widths {real}: expected a DRUNet without biases, at most {WIDTHS} wide")
    w.put("m_head.weight", WIDTHS[0], small["m_head.weight"].shape[1], 3, 1)
    for i, stage in enumerate(names):
        w.blocks(stage, WIDTHS[i], real[i], 0)
        w.put(f"{stage}.{BLOCKS}.weight", WIDTHS[i + 1], WIDTHS[i], 2, 1)
    w.blocks("m_body", WIDTHS[3], real[3], 0)
    for i in (2, 1, 0):
        w.put(f"m_up{i + 1}.0.weight", WIDTHS[i], WIDTHS[i + 1], 2, 1, transposed=True)
        w.blocks(f"m_up{i + 1}", WIDTHS[i], real[i], 1)
    w.put("m_tail.weight", channels, WIDTHS[0], 3, 1)
    missing = set(small) - set(w.wide)
    if missing:
        raise SystemExit(f"no place for {sorted(missing)[0]}: at most {BLOCKS} blocks a stage")
    return w.wide


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.split("\n\n")[1])
    small, facts = read_safetensors(sys.argv[1])
    facts = {**facts, "widths": ",".join(map(str, WIDTHS)), "blocks": str(BLOCKS)}
    write_safetensors(sys.argv[2], widen(small), facts)


if __name__ == "__main__":
    main()
