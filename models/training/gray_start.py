#!/usr/bin/env python3
"""Makes a gray DRUNet out of one for colours, as a start for training: gray_start.py COLOR.safetensors GRAY.safetensors

A gray image is a colour image of three equal channels: the first convolution's weights of red, green and blue are added
up, and the last one's are averaged. Noise that is the same in all three is as strong as independent noise that is sqrt(3)
times as large, so the weights of the noise level grow by that. All others stay."""
import json
import sys

import numpy


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]).reshape(entry["shape"]).astype("<f4")
            for name, entry in header.items()}


def write(path, tensors):
    header, data = {"__metadata__": {"format": "pt", "sigma_max": "0.2"}}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    tensors = read(sys.argv[1])
    head, tail = tensors["m_head.weight"], tensors["m_tail.weight"]
    if head.shape[1] != 4 or tail.shape[0] != 3:
        sys.exit(f"{sys.argv[1]} is no DRUNet for colours: give one, such as models/drunet-color-small.safetensors")
    tensors["m_head.weight"] = numpy.ascontiguousarray(numpy.stack([head[:, :3].sum(1), head[:, 3] * 3 ** 0.5], 1).astype("<f4"))
    tensors["m_tail.weight"] = tail.mean(0, keepdims=True)
    write(sys.argv[2], tensors)


main()
