#!/usr/bin/env python3
"""Makes a gray DRUNet out of one for colours, as a start for training: gray_start.py COLOR.safetensors GRAY.safetensors

A gray image is a colour image of three equal channels: the first convolution's weights of red, green and blue are added
up, and the last one's are averaged. Noise that is the same in all three is as strong as independent noise that is sqrt(3)
times as large, so the weights of the noise level grow by that. All others stay."""
import sys

import numpy

from weights import read, write


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    tensors, sigma_max = read(sys.argv[1])
    head, tail = tensors["m_head.weight"], tensors["m_tail.weight"]
    if head.shape[1] != 4 or tail.shape[0] != 3:
        sys.exit(f"{sys.argv[1]} is no DRUNet for colours: give one, such as models/drunet-color-small.safetensors")
    tensors["m_head.weight"] = numpy.ascontiguousarray(numpy.stack([head[:, :3].sum(1), head[:, 3] * 3 ** 0.5], 1).astype("<f4"))
    tensors["m_tail.weight"] = tail.mean(0, keepdims=True)
    write(sys.argv[2], tensors, sigma_max)


main()
