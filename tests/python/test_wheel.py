"""test_wheel.py PROGRAM BUILD: builds the wheel, installs it into an empty environment, and denoises there without build tools.

The environment has no program but its own Python, and no library but the wheel's. Skipped if pip finds neither an index
nor local copies of what the build needs."""
import pathlib
import shutil
import subprocess
import sys

from common import ROOT, Bench, skip
import numpy as np
from support import picture

# What pip prints when there is no way to an index; anything else is a failure of the build.
UNREACHABLE = ("No matching distribution found", "Could not find a version", "Failed to establish a new connection",
               "Temporary failure in name resolution")
SCRIPT = """
import pathlib, sys
import numpy as np
import tessera
image = np.load(sys.argv[1])
with tessera.Denoiser(device="cpu") as denoise:
    np.save(sys.argv[2], denoise(image, 0.1))
maps = pathlib.Path("/proc/self/maps").read_text()
print(pathlib.Path(tessera.__file__).parent)
print(sorted({pathlib.Path(line.split()[-1]).name for line in maps.splitlines() if "/tessera.libs/" in line}))
for name in ("jansson", "libpng", "libyaml", "fftw3f"):
    assert all("/tessera.libs/" in line for line in maps.splitlines() if name in line), name
"""


def run(command, **more):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def pip(python, *arguments, **more):
    result = run([python, "-m", "pip", "--retries", "2", *arguments], **more)
    if result.returncode and any(text in result.stdout for text in UNREACHABLE):
        skip("pip reaches no index, and finds no local copies: " + result.stdout.strip().splitlines()[-1])
    return result


def environment(folder):
    """A fresh environment's Python, from this Python or the first on the path; None where neither can make one."""
    for python in (sys.executable, shutil.which("python3")):
        if python and run([python, "-m", "venv", "--clear", folder]).returncode == 0:
            return folder / "bin" / "python"
    return None


def main():
    bench, build = Bench(sys.argv[1]), pathlib.Path(sys.argv[2])
    builder, empty = environment(bench.path("builder")), environment(bench.path("empty"))
    if not builder or not empty:
        skip("no virtual environments here (Debian: python3-venv)")
    wheels = bench.path("wheels")
    result = pip(builder, "wheel", "--no-deps", "--wheel-dir", wheels, "--config-settings", f"build-dir={build / 'wheel'}",
                 *sys.argv[3:], ROOT)
    if not bench.check(result.returncode == 0, "the wheel is built" + result.stdout[-2000:] * bool(result.returncode)):
        bench.finish()
    wheel = next(wheels.glob("*.whl"))
    bench.check("-py3-none-manylinux_" in wheel.name, f"for every Python 3, and with its libraries inside: {wheel.name}")
    result = pip(empty, "install", wheel)
    bench.check(result.returncode == 0, "it is installed" + result.stdout[-2000:] * bool(result.returncode))
    image = picture(40, 56)
    np.save(bench.path("in.npy"), image)
    bare = {"PATH": str(empty.parent), "HOME": str(bench.folder), "TESSERA_CACHE": str(bench.cache)}
    result = run([empty, "-c", SCRIPT, bench.path("in.npy"), bench.path("out.npy")], env=bare, cwd=bench.folder)
    if bench.check(result.returncode == 0, f"it denoises without build tools: {result.stdout[-2000:]}"):
        bench.record("denoise", bench.path("in.npy"), bench.path("wanted.npy"), "--model", "drunet-color-small", "--sigma", "0.1",
                     "--device", "cpu", "--range", "type")
        bench.check(np.array_equal(np.load(bench.path("out.npy")), np.load(bench.path("wanted.npy"))), "the program's samples")
    bench.finish()


main()
