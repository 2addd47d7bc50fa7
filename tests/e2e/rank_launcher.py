"""rank_launcher.py: starts programs as several ranks under a real mpirun, for the tests of ranks."""
import os
import pathlib
import shutil
import subprocess
import sys

from support import SANITIZERS, Bench, skip

SILENCE = 2  # seconds, instead of 15


class Launcher:
    """Runs programs under mpirun: as root, with more ranks than cores, without copying from other processes' memory,
    which containers forbid."""

    def __init__(self, bench, module):
        self.bench, self.module, self.count = bench, module, 0
        named = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
        self.options = ["--oversubscribe"] if "Open MPI" in named or "OpenRTE" in named else []
        self.env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "sh",
                    "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "TESSERA_RANK_SECONDS": str(SILENCE), "TESSERA_MPI": module,
                    "TESSERA_CACHE": str(bench.cache), "LC_ALL": "C", **SANITIZERS}

    def start(self, ranks, *command, env=None):
        """Files, not pipes: a rank that outlives mpirun must not keep this test waiting."""
        self.count += 1
        names = [self.bench.path(f"{what}{self.count}.txt") for what in ("out", "err")]
        command = ["mpirun", *self.options, "-n", str(ranks), *map(str, command)]
        with open(names[0], "w") as out, open(names[1], "w") as err:
            process = subprocess.Popen(command, env={**os.environ, **self.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.bench.folder)
        process.names = names
        return process

    def end(self, process, seconds=60):
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            status = None
        return (status, *(name.read_text() for name in process.names))

    def run(self, ranks, *command, env=None, seconds=60):
        return self.end(self.start(ranks, *command, env=env), seconds)


def said(err):
    """The lines of tessera, without those of mpirun."""
    return [line for line in err.splitlines() if line.startswith("tessera: ")]


def ranks_of(launcher):
    """{rank: pid} of the processes that have joined: those below mpirun with the environment of a rank."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if entry.name.isdigit() and parent == launcher:
                variables = dict(v.split("=", 1) for v in (entry / "environ").read_text().split("\0") if "=" in v)
                found[int(variables["OMPI_COMM_WORLD_RANK"])] = int(entry.name)
        except (OSError, KeyError, ValueError, IndexError):
            pass
    return found


def opened(pid, path):
    """Whether that process has the file open."""
    try:
        return any(os.path.samefile(entry, path) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def open_bench():
    """(bench, launcher, program, tool) from the arguments PROGRAM DIST_TOOL MODULE. Skips without mpirun or without the MPI module."""
    program, tool, module = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
    if not shutil.which("mpirun"):
        skip("there is no mpirun (Debian: openmpi-bin)")
    if not pathlib.Path(module).exists():
        skip("this build has no MPI module (Debian: libopenmpi-dev)")
    bench = Bench(program)
    return bench, Launcher(bench, module), program, tool
