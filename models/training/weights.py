"""Reads and writes safetensors files of a DRUNet, for the scripts here that make a start for training."""
import json

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
        header[name] = {"dtype": {2: "F16", 4: "F32"}[values.itemsize], "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
