#!/usr/bin/env python3
"""Adds a residual block to every stage of a DRUNet, as a start for training: add_block.py DRUNET.safetensors LARGER.safetensors

The new block is the last of its stage. Its first convolution is random and its second one zero, so that it adds nothing to
its input, and the network denoises as before until training changes it. All other weights stay."""
import json
import re
import sys

import numpy


def read(path):
    """The tensors, and the largest noise level."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    sigma_max = header.pop("__metadata__", {}).get("sigma_max", "0.2")
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]).reshape(entry["shape"]).astype("<f4")
            for name, entry in header.items()}, sigma_max


def write(path, tensors, sigma_max):
    header, data = {"__metadata__": {"format": "pt", "sigma_max": sigma_max}}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


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
