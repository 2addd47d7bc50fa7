"""ranks.py PROGRAM DIST_TOOL MODULE calls|jobs: jobs of several ranks under a real mpirun. Skips without mpirun or without the MPI module."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from support import leftovers, picture, to_integers


def check_calls(bench, launcher, tool):
    for ranks in (1, 2, 3, 4, 7):
        status, out, err = launcher.run(ranks, tool, "calls")
        bench.check(status == 0 and out == f"ok {ranks} {'mpi' if ranks > 1 else 'solo'}\n" and "FAILED" not in err,
                    f"every call with {ranks} ranks: {status} {out} {err[:400]}")
    status, out, err = launcher.run(3, tool, "calls", env={"TESSERA_SHARED_MEMORY": "0"})
    bench.check(status == 0 and "FAILED" not in err, f"every call without shared memory: {status} {out} {err[:400]}")


def check_bad_launches(bench, launcher, tool):
    status, out, err = launcher.run(3, tool, "version", env={"FAULT_RANK": "2"})
    bench.check(status == 1 and out.startswith("error: rank 2 (") and "version 0.0.9" in out and out.count("\n") == 1, f"other version: {status} {out}")
    status, out, err = launcher.run(4, tool, "fail", env={"FAULT_RANK": "3"})
    bench.check(status == 1 and out == "error: rank 3: no such file\n", f"one rank fails: {status} {out}")
    status, out, err = launcher.run(1, tool, "calls", ":", "-n", "1", tool, "calls", "x")
    bench.check(status == 1 and out.startswith("error: rank 1 was started with other arguments") and out.count("\n") == 1, f"other arguments: {status} {out}")
    other = bench.path("elsewhere")
    other.mkdir()
    status, out, err = launcher.run(1, tool, "calls", ":", "-n", "1", "sh", "-c", f"cd {other} && exec {tool} calls")
    bench.check(status == 1 and "in the folder" in out and out.count("\n") == 1, f"another folder: {status} {out}")
    # a launcher of another library: its processes do not find each other
    status, out, err = launcher.run(1, tool, "calls", env={"PMI_SIZE": "3", "PMI_RANK": "0"})
    bench.check(status == 0 and out == "ok 1 solo\n", f"mpirun -n 1 inside of another launcher: {status} {out}")
    alone = subprocess.run([tool, "calls"], env={**os.environ, **launcher.env, "PMI_SIZE": "3", "PMI_RANK": "0"}, capture_output=True, text=True)
    bench.check(alone.returncode == 1 and "the launcher started 3 ranks (PMI_SIZE), but" in alone.stdout, f"another MPI's launcher: {alone}")


class Lost:
    """A job of which a random rank is stopped or killed once it runs: it must end soon, and name the rank. Several of them
    run at the same time."""

    def __init__(self, launcher, command, ranks, how, joined, what):
        self.launcher, self.ranks, self.how, self.what = launcher, ranks, how, what
        self.victim, self.pids = random.randrange(ranks), {}
        self.process = launcher.start(ranks, *command)
        self.joined = joined or (lambda: self.process.names[0].read_text().count("\n") == ranks)

    def strike(self):
        deadline = time.monotonic() + 30
        while (len(self.pids) < self.ranks or not self.joined()) and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.05)
            self.pids = ranks_of(self.process.pid)
        time.sleep(random.uniform(0, 0.3))
        self.begin = time.monotonic()
        self.struck = len(self.pids) == self.ranks and self.process.poll() is None
        if self.struck:
            os.kill(self.pids[self.victim], self.how)
        else:
            self.process.kill()

    def check(self, bench):
        status, out, err = self.launcher.end(self.process, 30)
        took, victim = time.monotonic() - self.begin, self.victim
        named = f"rank {victim} (" in err or (self.how == signal.SIGKILL and f"process rank {victim} " in err)
        bench.check(self.struck, f"{self.what}: the ranks start and do not end before: {out} {err[:300]}")
        bench.check(status not in (0, None) and named, f"{self.what}: rank {victim} of {self.ranks} lost, {took:.1f} s, status {status}: {err[:600]}")


def check_lost_ranks(bench, launcher, tool):
    """Also a rank that hangs before the ranks know each other: it cannot be named, but the job ends. All ranks notice when rank 0 hangs, and one reports it, even if it
    ends slowly."""
    hangs = launcher.start(3, "sh", "-c", f'[ "$OMPI_COMM_WORLD_RANK" = 0 ] && kill -STOP $$; exec {tool} wait', env={"TESSERA_RANK_SECONDS": "1"})
    jobs = [Lost(launcher, (tool, mode), random.choice((2, 3, 4)), how, None, f"{mode} {how.name}")
            for mode in ("wait", "work") for how in (signal.SIGKILL, signal.SIGSTOP)]
    slow = Lost(launcher, (tool, "slow"), 4, signal.SIGSTOP, None, "slow SIGSTOP")
    slow.victim = 0
    jobs.append(slow)
    for job in jobs:
        job.strike()
    for job in jobs:
        job.check(bench)
    err = slow.process.names[1].read_text()
    bench.check(err.count("lost:") == 1, f"slow SIGSTOP: one rank reports that rank 0 hangs: {err[:600]}")
    status, out, err = launcher.end(hangs, 30)
    bench.check(status == 1 and "lost: the 3 ranks have not come together within 8 seconds" in err and err.count("lost:") == 1, f"a rank hangs at the start: {status} {err[:300]}")


def make_folder(bench):
    folder = bench.path("in")
    folder.mkdir()
    for i in range(9):
        image = picture(40 + 24 * (i * 5 % 9), 70)
        if i % 3 == 0:
            np.save(folder / f"{i}.npy", (image * (4000 if i == 6 else 1)).astype(np.float32))
        else:
            np.save(folder / f"{i}.npy", to_integers(image if i % 2 else image[..., 0], np.uint8))
    np.save(folder / "volume.npy", np.stack([picture(30, 40)[..., 0] * s for s in (1, 0.9, 0.8, 0.7, 0.6)]).astype(np.float32))
    (folder / "broken.png").write_bytes(b"no")
    return folder


def entries(record):
    """What must not depend on the ranks."""
    return [{k: v for k, v in file.items() if k not in ("seconds", "rank")} for file in record["denoise"]["files"]]


def same_files(one, other):
    names = sorted(path.name for path in one.iterdir())
    return names == sorted(path.name for path in other.iterdir()) and all((one / n).read_bytes() == (other / n).read_bytes() for n in names)


def check_folder(bench, launcher, program):
    folder = make_folder(bench)
    words = ("--threads", "1", "--truth", folder)
    alone = bench.run("denoise", folder, bench.path("one"), *words, "--json", bench.path("one.json"), "--quiet")
    one = json.loads(bench.path("one.json").read_text())
    bench.check(alone.status == 1 and one["ranks"] == 1, f"one rank: {alone}")
    for ranks, env in ((2, {}), (3, {"TESSERA_QUEUE": "1"}), (4, {}), (7, {})):
        made, written = bench.path(f"many{ranks}"), bench.path(f"many{ranks}.json")
        status, out, err = launcher.run(ranks, program, "denoise", folder, made, *words, "--json", written, "--quiet", env=env)
        many = json.loads(written.read_text())
        workers = {file.get("rank") for file in many["denoise"]["files"]}
        bench.check(status == 1 and out == "" and len(said(err)) == 1 and said(err)[0].startswith("tessera: 1 of 11 files failed"),
                    f"{ranks} ranks: {status} {out} {said(err)}")
        bench.check(same_files(bench.path("one"), made), f"{ranks} ranks write the same bytes {env}")
        bench.check(entries(many) == entries(one) and many["quality"] == one["quality"] and many["input"] == one["input"], f"{ranks} ranks: the record has the same files")
        bench.check(many["ranks"] == ranks and workers <= set(range(ranks)) and len(workers) > 1, f"{ranks} ranks worked: {workers}")
    status, out, err = launcher.run(3, program, "denoise", folder / "1.npy", folder / "2.npy", bench.path("two"), "--threads", "1", "--sigma", "0.1")
    bench.check(status == 0 and out.count("measured") == 1 and len(said(err)) == 1 and "1 of them have nothing to do" in said(err)[0], f"fewer files than ranks: {status} {out} {err}")
    bench.check(sorted(path.name for path in bench.path("two").iterdir()) == ["1.npy", "2.npy"], "several inputs")


def check_refusals(bench, launcher, program):
    """One line, the status, and nothing written. The descriptor 9 of rank 1 is another folder than that of the others."""
    folder, other, script = bench.path("in"), bench.path("other"), bench.path("rank.sh")
    image, out, models = folder / "1.npy", bench.path("x"), pathlib.Path(program).parent / "share/tessera/models"
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec 9<"$ONE"; else exec 9<"$OTHERS"; fi\nexec {program} "$@"\n')
    other.mkdir()
    shutil.copy(image, other)
    nine = "/proc/self/fd/9"
    for expected, says, words, one, others in (
            (2, "unknown option --sgima", ("denoise", folder, out, "--sgima", "1"), "", ""),
            (1, "convert cannot share", ("convert", models / "drunet-gray-small.safetensors", out), "", ""),
            (1, "rank 1 (", ("denoise", nine, out), other, folder),
            (1, "rank 1: /proc/self/fd/9/drunet-gray-small.safetensors", ("denoise", folder, out, "--model", nine + "/drunet-gray-small.safetensors"), other, models),
            (2, "rank 1: --sigma", ("denoise", folder, out, "--sigma", nine + "/0.npy"), other, folder),
            (1, "rank 1: /proc/self/fd/9/x: cannot make this folder", ("denoise", folder, nine + "/x"), "/proc", other)):
        command = ("sh", script) if one else (program,)
        status, printed, err = launcher.run(3, *command, *words, "--quiet", env={"ONE": str(one), "OTHERS": str(others)})
        lines = said(err)
        # Ranks take the files to look at in any order. If rank 1 was so fast that it took every file, all fail; if it was so slow that it got none, it is the comparison of the
        # models that finds that it has none.
        other_ends = "--model" in words and ("of 11 files failed" in err or "rank 1 (" in err and "does not see the same input files" in err)
        bench.check(status == expected and printed == "" and len(lines) == 1 and (says in lines[0] or other_ends), f"{says}: {status} {printed} {err[:500]}")
        bench.check(not out.exists() and not any(other.glob("x/*")), f"{says}: writes nothing")
    status, printed, err = launcher.run(3, program, "info", env={"TESSERA_MPI": "/none/tessera_mpi.so"})
    bench.check(status == 1 and printed == "" and len(said(err)) == 1 and "started as 3 ranks" in err and "MPI" in err, f"no module: {status} {err[:500]}")
    status, printed, err = launcher.run(2, program, "--version", env={"TESSERA_RANKS": "off"})
    bench.check(status == 0 and printed.count("\n") == 2, f"TESSERA_RANKS=off: two jobs: {printed}")


def check_info(bench, launcher, program):
    status, printed, err = launcher.run(3, program, "info", "--json", "-")
    record = json.loads(printed)
    ranks = record["info"]["ranks"]
    bench.check(status == 0 and not said(err) and record["ranks"] == 3 and [r["rank"] for r in ranks] == [0, 1, 2] and len({r["pid"] for r in ranks}) == 3 and all(r["host"] for r in ranks), f"info: {printed} {err}")


def check_lost_job(bench, launcher, program):
    """A lost rank leaves whole outputs and no temporary files of the others; a later run with another number of ranks does the rest."""
    folder, whole = bench.path("many"), bench.path("whole")
    folder.mkdir()
    for i in range(16):
        np.save(folder / f"{i:02}.npy", to_integers(picture(220, 200 + 8 * (i % 3)), np.uint8))
    words = ("--sigma", "0.1", "--threads", "1", "--quiet")
    bench.check(bench.run("denoise", folder, whole, *words).status == 0, "one rank")
    jobs = []
    for how in (signal.SIGKILL, signal.SIGSTOP):
        made = bench.path(f"lost-{how.name}")
        jobs.append((how, made, Lost(launcher, (program, "denoise", folder, made, *words), 3, how, made.exists, f"denoise {how.name}")))
    for how, made, job in jobs:
        job.strike()
    for how, made, job in jobs:
        job.check(bench)
        done = sorted(made.glob("*.npy")) if made.exists() else []
        bench.check(all(p.read_bytes() == (whole / p.name).read_bytes() for p in done), f"{how.name}: {len(done)} outputs are whole")
        left = leftovers(made)
        # mpirun kills the others a second after it asked them to end, which a busy machine may not be quick enough for
        bench.check(len(left) <= 2, f"{how.name}: the lost rank leaves a temporary file, and at most one other: {left}")
        for name in left:
            shutil.rmtree(made / name, ignore_errors=True)
        status, printed, err = launcher.run(2, program, "denoise", folder, made, "--skip-existing", *words)
        bench.check(status == 0 and same_files(whole, made), f"{how.name}: two ranks do the rest: {status} {err[:300]}")


def main():
    bench, launcher, program, tool = open_bench()
    begin = time.monotonic()
    parts = {"calls": lambda: (check_calls(bench, launcher, tool), check_bad_launches(bench, launcher, tool), check_lost_ranks(bench, launcher, tool)),
             "jobs": lambda: (check_info(bench, launcher, program), check_folder(bench, launcher, program), check_refusals(bench, launcher, program),
                              check_lost_job(bench, launcher, program))}
    parts[sys.argv[4]]()
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
