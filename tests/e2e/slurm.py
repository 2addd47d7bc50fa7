"""slurm.py PROGRAM DIST_TOOL MODULE: jobs of several ranks under a real Slurm of one node, which this test starts with a configuration of its own (slurm_node.py).
srun gives one rank's bytes, a lost rank ends the step, and the scripts of `bench scaling --slurm` check, queue and run. Skips where Slurm is not installed or
cannot be started: it needs root and Debian's slurm-wlm."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from rank_launcher import said
from slurm_node import Node, missing
from support import SANITIZERS, Bench, picture, skip, to_integers

SRUN = ("srun", "--mpi=pmix", "--overlap", "--kill-on-bad-exit=1")


def check_srun(bench, node, program):
    ran = node.run(*SRUN, "-n", 2, program, "info", "--json", "-")
    record = json.loads(ran.stdout) if ran.returncode == 0 else {}
    bench.check(record.get("ranks") == 2 and [r["rank"] for r in record["info"]["ranks"]] == [0, 1], f"srun -n 2 info: {ran}")
    ran = node.run("srun", "-n", 2, program, "--version", env={"TESSERA_RANKS": "off"})
    bench.check(ran.returncode == 0 and ran.stdout.count("\n") == 2, f"TESSERA_RANKS=off: two jobs: {ran}")
    folder = bench.path("in")
    folder.mkdir()
    for i in range(5):
        np.save(folder / f"{i}.npy", to_integers(picture(90 + 8 * i, 70), np.uint8))
    for source, name in ((folder, "folder"), (folder / "4.npy", "image.npy")):
        words = ("denoise", source, bench.path(f"one-{name}"), "--sigma", "0.1", "--threads", "1", "--quiet")
        bench.check(bench.run(*words).status == 0, f"one process: {name}")
        many = bench.path(f"many-{name}")
        ran = node.run(*SRUN, "-n", 3, program, *words[:2], many, *words[3:])
        one = bench.path(f"one-{name}")
        files = [(p, many / p.name) for p in sorted(one.iterdir())] if one.is_dir() else [(one, many)]
        same = [p.name for p, q in files if not q.exists() or p.read_bytes() != q.read_bytes()]
        bench.check(ran.returncode == 0 and not same, f"srun -n 3 denoise, {name}: the bytes of one rank: {same} {ran}")


def ranks_of_step(program):
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == program:
                variables = dict(v.split("=", 1) for v in (entry / "environ").read_text().split("\0") if "=" in v)
                found[int(variables["SLURM_PROCID"])] = int(entry.name)
        except (OSError, KeyError, ValueError):
            pass
    return found


def check_lost(bench, node, program):
    """A rank of a step is killed or stopped: the step ends with a line that names it, and nothing half is left."""
    np.save(bench.path("long.npy"), to_integers(picture(1100, 400), np.uint8))
    folder = bench.path("lost")
    folder.mkdir()
    for how in (signal.SIGKILL, signal.SIGSTOP):
        output, victim = folder / "out.npy", random.randrange(3)
        command = [*SRUN, "-n", "3", program, "denoise", str(bench.path("long.npy")), str(output), "--sigma", "0.1", "--threads", "1", "--quiet"]
        process = subprocess.Popen(command, env={**os.environ, **node.env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=bench.folder)
        deadline, pids = time.monotonic() + 60, {}
        while (len(pids) < 3 or not os.listdir(folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of_step(program)
        struck = len(pids) == 3 and process.poll() is None
        if struck:
            os.kill(pids[victim], how)
        begin = time.monotonic()
        try:
            err = process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            err = process.communicate()[1] + " and did not end"
        took = time.monotonic() - begin
        # The other ranks report the loss of rank 0 in turn: where ending the job takes long, a second one does.
        named = f"rank {victim} (" in err or (how == signal.SIGKILL and re.search(rf"task {victim}\b.*Killed", err))
        bench.check(struck and process.returncode not in (0, None, -9) and named and len(said(err)) <= (1 if victim else 2), f"{how.name} of rank {victim} under srun: {took:.1f} s, {process.returncode}: {err[:700]}")
        bench.check(not output.exists(), f"{how.name}: no half-written output")
        for name in os.listdir(folder):
            shutil.rmtree(folder / name, ignore_errors=True)


# --- scripts --------------------------------------------------------------------------------------------------------

def change(folder, **settings):
    """Edits settings.sh, as a user would."""
    path = folder / "settings.sh"
    text = path.read_text()
    for name, value in settings.items():
        text, count = re.subn(rf"(?m)^{name}=\S*", lambda _: f"{name}='{value}'", text)
        assert count == 1, name
    path.write_text(text)


def write_scripts(bench, name, *words):
    folder = bench.path(name)
    made = bench.run("bench", "scaling", "--slurm", folder, *words)
    bench.check(made.status == 0 and json.loads(made.out)["jobs"] == len((folder / "points").read_text().splitlines()), f"writes scripts: {made}")
    return folder


def queued(node):
    return [name for name in node.run("squeue", "-h", "-o", "%j").stdout.split() if name.startswith("tessera-")]


def check_points(bench):
    """Nodes and cards are those of the published study, nodes of four cards."""
    folder = write_scripts(bench, "published")
    points = [line.split() for line in (folder / "points").read_text().splitlines()]
    shapes = {int(p[2]): (int(p[3]), int(p[4])) for p in points}
    bench.check(shapes == {1: (1, 1), 2: (1, 2), 4: (1, 4), 8: (2, 4), 16: (4, 4), 32: (8, 4), 64: (16, 4)}, f"nodes and cards: {shapes}")
    bench.check([p[2] for p in points if p[:2] == ["deblur", "4096"]] == ["1", "2", "4", "8", "16", "32", "64"], "4096: 1 to 64 cards")
    bench.check([p[2] for p in points if p[0] == "tomo3d"] == ["2", "4", "8", "16", "32", "64"], "tomo3d: 2 to 64 cards")
    for script in sorted(folder.glob("*.sh")):
        bench.check(subprocess.run(["bash", "-n", script]).returncode == 0, f"{script.name}: bash reads it")
    again = bench.run("bench", "scaling", "--slurm", folder)
    bench.check_refused(again, 2, "settings.sh", "another folder")
    bench.check_refused(bench.run("bench", "scaling", "--slurm", bench.path("other"), "--problems", "mri"), 2, "--problems mri", "tomo3d")
    bench.check_refused(bench.run("bench", "size", "--slurm", bench.path("other")), 2, "--slurm", "scaling")
    bench.check(not bench.path("other").exists(), "a refusal writes nothing")


def check_checks(bench, node):
    """One line says what is missing, and nothing is queued."""
    folder = write_scripts(bench, "it's checked", "--device", "cpu", "--problems", "deblur", "--sizes", "64", "--ranks", "1,2")
    text = (folder / "settings.sh").read_text()
    home = bench.path("home")
    home.mkdir()
    (home / ".bash_profile").write_text('module() { case "$1 $2" in "load mpi/4") export LOADEDMODULES=${LOADEDMODULES:+$LOADEDMODULES:}mpi/4;; purge*) export LOADEDMODULES=;; *) return 1;; esac; }\n')
    model = bench.path("model.safetensors")
    for says, settings, points in (
            ("/none/tessera does not run", {"TESSERA": "/none/tessera"}, None),
            ("is version 0.1.0, and these scripts are for 9.9", {"VERSION": "9.9"}, None),
            ("the module cuda/1 cannot be loaded", {"MODULES": "mpi/4 cuda/1"}, None),
            (f"deblur: tessera: {model}", {"MODEL": model}, None),
            ("/none/image.png: no such file", {"DATA": "/dev/null /none/image.png"}, None),
            ("srun has no --mpi=pmi9", {"MPI": "pmi9"}, None),
            ("deblur 64 on 16 ranks: ", {}, "deblur 64 16 4 4\n"),
            ("deblur 64 on 2 ranks: ", {"SBATCH_OPTIONS": "--partition=none"}, "deblur 64 2 1 2\n")):
        (folder / "settings.sh").write_text(text)
        change(folder, **settings)
        table = (folder / "points").read_text()
        if points:
            (folder / "points").write_text(points)
        ran = node.run(folder / "submit.sh", env={"HOME": str(home)})
        (folder / "points").write_text(table)
        lines = ran.stderr.splitlines()
        bench.check(ran.returncode == 1 and len(lines) == 2 and lines[0].startswith("check: ") and says in lines[0] and lines[1] == "submit: nothing was queued", f"{says}: {ran.returncode} {ran.stdout} {lines}")
        bench.check(not queued(node) and not (folder / "queued").exists(), f"{says}: nothing is queued")
    (folder / "settings.sh").write_text(text)
    change(folder, MODULES="mpi/4")
    ran = node.run(folder / "check.sh", env={"HOME": str(home)})
    bench.check(ran.returncode == 0 and ran.stdout == "check: all is there for 2 jobs\n" and not ran.stderr and not queued(node), f"all is there: {ran}")
    cards = write_scripts(bench, "cards", "--problems", "tomo2d", "--ranks", "4", "--sizes", "64")
    change(cards, CPUS="1")
    ran = node.run(cards / "check.sh")
    bench.check(ran.returncode == 0 and "check: all is there for 1 jobs" in ran.stdout, f"jobs with cards: {ran}")


def check_jobs(bench, node):
    """The scripts as they are, from submit.sh to the results."""
    folder = write_scripts(bench, "jobs", "--device", "cpu", "--problems", "deblur", "--sizes", "64", "--ranks", "1,2", "--model", "random:dncnn")
    ran = node.run(folder / "submit.sh")
    bench.check(ran.returncode == 0 and ran.stdout.count(": job ") == 2, f"submit.sh: {ran}")
    deadline = time.monotonic() + 120
    while queued(node) and time.monotonic() < deadline:
        time.sleep(0.3)
    for ranks in (1, 2):
        result, log = folder / "results" / f"deblur-64-{ranks}.jsonl", folder / "results" / f"deblur-64-{ranks}.log"
        points = [json.loads(line) for line in result.read_text().splitlines()] if result.exists() else []
        bench.check([p["ranks"] for p in points] == [ranks] and points[0]["study"] == "scaling", f"job of {ranks} rank(s): {points} {log.read_text()[:500] if log.exists() else ''}")
    ran = node.run(folder / "submit.sh")
    bench.check(ran.returncode == 0 and ran.stdout.count(": has a result") == 2 and not queued(node), f"submit.sh again: {ran}")


def main():
    program, module = (str(pathlib.Path(path).resolve()) for path in (sys.argv[1], sys.argv[3]))
    if missing():
        skip(missing())
    if not pathlib.Path(module).exists():
        skip("this build has no MPI module (Debian: libopenmpi-dev)")
    bench = Bench(program)
    # Without copying from other processes' memory, which containers forbid.
    node = Node(bench.path("slurm"), env={"TESSERA_MPI": module, "TESSERA_CACHE": str(bench.cache), "TESSERA_RANK_SECONDS": "2", "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "LC_ALL": "C", **SANITIZERS})
    begin = time.monotonic()
    try:
        if not node.start():
            skip(f"Slurm cannot be started here:\n{node.logs()}")
        if "pmix" not in node.run("srun", "--mpi=list").stdout:
            skip("this Slurm has no PMIx")
        check_points(bench)
        check_srun(bench, node, program)
        check_lost(bench, node, program)
        check_checks(bench, node)
        check_jobs(bench, node)
    finally:
        node.stop()
        shutil.rmtree(bench.folder, ignore_errors=True)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
