"""plan_notes.py PROGRAM: notes on plans that are not as asked, or that a memory limit makes slow."""
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
np.save(bench.path("in.npy"), np.full((160, 200), 90, np.uint8))


def planned(name, *options):
    """The record of the plan and the notes."""
    run = bench.run("plan", "denoise", bench.path(name), bench.path("out.npy"), "--sigma", "0.1", "--json", "-", *options)
    bench.check(run.status == 0, f"runs: {run}")
    return run.record["plan"], [line for line in run.err.splitlines() if "note: " in line]


for options, asked, used in ((("--tile", "64", "--halo", "33"), "--halo 33 asked", "halo"), (("--tile", "64", "--batch", "7"), "--batch 7 asked", "batch"),
                             (("--batch", "7"), "--batch 7 asked", "batch"), (("--halo", "33", "--verbose"), "--halo 33 asked, none used", None)):
    plan, notes = planned("in.npy", *options)
    bench.check(len(notes) == 1 and asked in notes[0] and (used is None or f"{plan[used]} used" in notes[0]), f"{options}: {notes}")
for options in ((), ("--tile", "64", "--halo", "64"), ("--tile", "64", "--batch", "1"), ("--halo", "33")):
    bench.check(planned("in.npy", *options)[1] == [], f"{options}: nothing to say")

np.save(bench.path("big.npy"), np.full((1500, 1600), 90, np.uint8))
refused = bench.run("plan", "denoise", bench.path("big.npy"), bench.path("out.npy"), "--sigma", "0.1", "--memory", "8M")
least = refused.err.partition("--memory 8M")[2].partition("--memory ")[2].split()[0] if refused.status else "8M"
tight, notes = planned("big.npy", "--memory", least)
free, none = planned("big.npy")
bench.check(tight["seconds"] > 3 * free["seconds"] and len(notes) == 1 and f"--memory {least}" in notes[0] and none == [], f"a limit that makes it slow is named: {notes}")
better = notes[0].partition("; with ")[2].split()[0]
good, none = planned("big.npy", "--memory", better)
bench.check(good["seconds"] < 1.6 * free["seconds"] and none == [], f"{better} costs little: {good['seconds']:.3g} s, {free['seconds']:.3g} s without a limit, {tight['seconds']:.3g} s with {least}")
bench.finish()
