"""Functions that the tests of the Python module share. Each runs as test_X.py PROGRAM LIBRARY and uses the module in the source tree."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "python")]

from support import Bench, picture, skip, to_integers  # noqa: E402,F401: skips without numpy

COLOUR, GRAY = "drunet-color-small", "drunet-gray-small"


def start():
    """The bench, and the module over the library named on the command line."""
    bench = Bench(sys.argv[1])
    os.environ["TESSERA_LIBRARY"] = str(pathlib.Path(sys.argv[2]).resolve())
    os.environ["TESSERA_CACHE"] = str(bench.cache)
    import tessera
    return bench, tessera


def raises(bench, kind, words, what, function):
    """That `function` raises exactly this kind, with these words in its message."""
    try:
        function()
        bench.check(False, f"{what}: raised nothing")
    except Exception as problem:
        bench.check(type(problem) is kind and all(word in str(problem) for word in words),
                    f"{what}: {type(problem).__name__}: {problem}")


def resident():
    """Bytes of this process that lie in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Exported:
    """An array that shows itself through DLPack alone; `**options` as old producers do not take them are refused."""

    def __init__(self, array, old=False):
        self.array, self.old = array, old

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
