#!/usr/bin/env python3
"""Adds a residual block to every stage of a DRUNet, as a start for training: add_block.py DRUNET.safetensors LARGER.safetensors

The new block is the last of its stage. Its first convolution is random and its second one zero, so that it adds nothing to
its input, and the network denoises as before until training changes it. All other weights stay."""
import re
import sys

import numpy

from weights import read, write


def larger(tensors, blocks):
    """Stages that go down end with a convolution, which moves up by one place; those that go up begin with one."""
    random, result = numpy.random.default_rng(5), {}
    for name, values in tensors.items():
        place = re.fullmatch(r"(m_down\d)\.(\d+)\.weight", name)
        result[f"{place[1]}.{blocks + 1}.weight" if place else name] = values
    for name, values in list(result.items()):
        place = re.fullmatch(r"(m_down\d|m_body|m_up\d)\.(\d+)\.res\.([02])\.weight", name)
        last = blocks if name.startswith("m_up") else blocks - 1
        if place and int(place[2]) == last:
            result[f"{place[1]}.{last + 1}.res.{place[3]}.weight"] = (
                numpy.zeros_like(values) if place[3] == "2" else (random.standard_normal(values.shape) * (2 / values[0].size) ** 0.5).astype("<f4"))
    return dict(sorted(result.items()))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    tensors, sigma_max = read(sys.argv[1])
    blocks = sum(re.fullmatch(r"m_body\.\d+\.res\.0\.weight", name) is not None for name in tensors)
    if not blocks or "m_down1.0.res.0.weight" not in tensors:
        sys.exit(f"{sys.argv[1]} is no DRUNet: give one, such as models/drunet-color-small.safetensors")
    write(sys.argv[2], larger(tensors, blocks), sigma_max)


main()
