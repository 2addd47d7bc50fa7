"""The networks, weights and images behind tests/data: read by dumps.py (which tests) and bench/peers/make_dumps.py
(which runs PyTorch). Small networks at three sizes, in gray and colour, and the full-width ones at one odd size."""
import zlib

import numpy as np

from support import DATA, NETWORKS, draw

FOLDER = DATA / "networks"
SIGMA = 0.1


class Case:
    def __init__(self, network, kind, channels, sizes, seed, **shape):
        self.network, self.channels, self.sizes, self.seed, self.shape = network, channels, sizes, seed, shape
        self.name = f"{network}-{kind}-{'gray' if channels == 1 else 'color'}"

    def weights(self):
        return NETWORKS[self.network](self.channels, seed=self.seed, **self.shape)

    def image(self, size):
        values = (draw(self.seed * 7919 + size[0], (*size, self.channels)) + np.float32(1)) / np.float32(2)
        return values[..., 0] if self.channels == 1 else values

    def checksum(self, weights):
        crc = 0
        for name, array in weights.items():
            crc = zlib.crc32(np.ascontiguousarray(array, "<f4").tobytes(), zlib.crc32(name.encode(), crc))
        for size in self.sizes:
            crc = zlib.crc32(np.ascontiguousarray(self.image(size), "<f4").tobytes(), crc)
        return crc


SMALL = {"drunet": {"widths": (32, 32, 64, 64), "blocks": 1}, "unet": {"widths": (32, 32, 64, 64)},
         "dncnn": {"depth": 5, "width": 32}}
FULL = {"drunet": {"widths": (64, 128, 256, 512), "blocks": 4}, "unet": {"widths": (64, 128, 256, 512)},
        "dncnn": {"depth": 20, "width": 64}}
CASES = [Case(network, "small", channels, ((64, 64), (40, 56), (37, 51)), 10 * i + channels, **SMALL[network])
         for i, network in enumerate(SMALL) for channels in (3, 1)]
CASES += [Case(network, "full", 3, ((45, 67),), 50 + i, **FULL[network]) for i, network in enumerate(FULL)]
