"""python_call.py LIBRARY: measures the overhead of a call from Python.

The library's run is replaced by a C function that takes the same arguments and does nothing, so only the work of the module
remains: checking the arrays, finding the plan, filling the structs, calling C. Prints the least and the median of
many rounds, in microseconds, for an array made by the call and for out=.
"""
import ctypes
import os
import pathlib
import statistics
import sys
import timeit

os.environ["TESSERA_LIBRARY"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import numpy as np  # noqa: E402
import tessera  # noqa: E402
from tessera import _library, denoiser  # noqa: E402

ROUNDS, CALLS = 300, 200


class EmptyRun:
    """The library, but for tess_denoiser_run, which is a function of the C library that looks at no argument."""

    def __init__(self, library):
        self._library = library
        run = ctypes.CDLL(None)["getppid"]
        run.argtypes, run.restype = library.tess_denoiser_run.argtypes, None  # its answer is no status
        self.tess_denoiser_run = run

    def __getattr__(self, name):
        return getattr(self._library, name)


def main():
    image = np.random.default_rng(1).random((8, 8, 3), np.float32)
    out = np.empty_like(image)
    denoise = tessera.Denoiser(device="cpu")
    denoise(image, 0.1)
    denoiser.lib = EmptyRun(_library.lib)
    for name, call in (("new array", lambda: denoise(image, 0.1)), ("out=", lambda: denoise(image, 0.1, out=out)),
                       ("empty_like alone", lambda: np.empty_like(image))):
        rounds = [seconds / CALLS * 1e6 for seconds in timeit.repeat(call, number=CALLS, repeat=ROUNDS)]
        print(f"{name:17s} least {min(rounds):6.2f} us, median {statistics.median(rounds):6.2f} us")


main()
