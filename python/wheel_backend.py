"""The build backend of the wheel: scikit-build-core runs CMake, then auditwheel copies in what a machine may lack.

libtessera links jansson, libpng, libyaml and FFTW. With them inside, and the tag of the oldest C library that it runs on, a wheel
installs where there is neither a compiler nor any of these. A machine without auditwheel gets the plain wheel, which
works where it was built.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from scikit_build_core.build import *  # noqa: F401,F403: all hooks but the one below
from scikit_build_core.build import build_wheel as _build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder) / _build_wheel(folder, config_settings, metadata_directory)
        repaired = pathlib.Path(folder) / "repaired"
        command = [sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(repaired), str(plain)]
        try:
            import auditwheel  # noqa: F401: only whether it is there
            subprocess.run(command, check=True)
            plain = next(repaired.glob("*.whl"))
        except ImportError:
            print("no auditwheel: the wheel needs the libraries of this machine", file=sys.stderr)
        shutil.copy(plain, wheel_directory)
        return plain.name
