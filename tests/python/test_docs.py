"""test_docs.py PROGRAM LIBRARY: the snippets of docs/python.md and docs/extending.md run, one after another, in one namespace a page.

A snippet may name what it needs after the language: ```python needs=card|deepinv|files. If it is missing, the snippet is skipped
and a line says so."""
import importlib.util
import os
import re

import numpy as np

from common import ROOT, picture, start, to_integers
from support import write_png


def has_card(bench):
    if not importlib.util.find_spec("torch"):
        return False
    import torch
    return torch.cuda.is_available()


def run(bench, path, there):
    page = (ROOT / path).read_text()
    names, count = {}, 0
    for match in re.finditer(r"^```python(?: needs=(\w+))?\n(.*?)^```$", page, re.M | re.S):
        need, text = match.groups()
        line = page[:match.start()].count("\n") + 2
        if not there[need]:
            print(f"left out: line {line} needs {need}")
            continue
        try:
            exec(compile("\n" * (line - 1) + text, path, "exec"), names)
            count += 1
        except Exception as problem:
            bench.check(False, f"{path} line {line}: {type(problem).__name__}: {problem}")
    return names, count


def main():
    bench, _ = start()
    os.chdir(bench.folder)
    write_png(bench.path("noisy.png"), to_integers(picture(40, 56), np.uint8))
    there = {None: True, "files": True, "card": has_card(bench), "deepinv": bool(importlib.util.find_spec("deepinv"))}
    names, count = run(bench, "docs/python.md", there)
    bench.check(count >= 5, f"{count} snippets ran")
    own, count = run(bench, "docs/extending.md", there)
    bench.check(count == 2, f"{count} snippets on operators ran")
    gained = own["psnr"](own["image"]) - own["psnr"](4 * own["adjoint"](own["measured"]))
    bench.check(gained > 2, f"an operator in Python: {gained:.2f} dB gained")

    def error(array):
        return float(np.sqrt(np.mean((np.asarray(array) - names["clean"]) ** 2)))

    noisy = error(names["noisy"])
    bench.check(error(names["result"]) < 0.3 * noisy, f"denoised: error {error(names['result']):.4f} of {noisy:.4f}")
    bench.check(error(names["x"]) < 0.5 * noisy, f"half of the pixels: error {error(names['x']):.4f}")
    bench.finish()


main()
