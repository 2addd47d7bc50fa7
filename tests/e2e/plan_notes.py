"""plan_notes.py PROGRAM: notes on plans that are not as asked."""
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
bench.finish()
