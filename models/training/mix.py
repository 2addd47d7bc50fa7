#!/usr/bin/env python3
"""Mixes two networks of the same shape: mix.py FIRST.safetensors SECOND.safetensors SHARE MIXED.safetensors

Each weight of the result, in fp16, is SHARE of the second's and the rest of the first's. Of two runs that follow each other,
a mix can be better than both."""
import sys

from weights import read, write


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__.splitlines()[0])
    (first, sigma_max), (second, _), share = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
    if {name: values.shape for name, values in first.items()} != {name: values.shape for name, values in second.items()}:
        sys.exit("the two networks differ in their shapes: give two of the same")
    write(sys.argv[4], {name: ((1 - share) * values + share * second[name]).astype("<f2") for name, values in first.items()}, sigma_max)


main()
