"""reconstruct_gpu.py PROGRAM [DEVICE]: compares reconstructions on an NVIDIA card with the CPU.

Every problem and both priors of volumes: the PSNR of every iteration, planned, counted and driver's bytes, the
same bits in two runs, a limit that requires slabs of a volume. Skips without a card, unless TESSERA_REQUIRE_GPU is set. DEVICE
cpu treats the CPU as a card, to try this script without one.
"""
import os
import re
import shutil
import sys

from support import MIB, Bench, np, skip

CARD = sys.argv[2] if len(sys.argv) > 2 else "cuda"
REAL = CARD != "cpu"
CASES = {
    "blurs": ("--problem", "deblur", "--size", "181x131", "--iterations", "4"),
    "deepinv's blurs": ("--problem", "deblur", "--size", "96x150", "--preset", "deepinv", "--iterations", "4"),
    "parallel rays": ("--problem", "tomo2d", "--size", "96", "--iterations", "4"),
    "cone beams, slices": ("--problem", "tomo3d", "--size", "40", "--angles", "20", "--iterations", "3"),
    "cone beams, a 3-D network": ("--problem", "tomo3d", "--size", "40", "--angles", "20", "--iterations", "3", "--prior", "volume"),
}
bench = Bench(sys.argv[1])


def run(name, *args, device=CARD):
    env = {"TESSERA_QUEUE": "1"} if device == "cpu" and not REAL else {}
    return bench.record("reconstruct", bench.path(name), *args, "--device", device, env=env)


def decibels(record):
    return [i["psnr_db"] for i in record["reconstruct"]["iterations"]]


def furthest(a, b):
    return max(abs(x - y) for x, y in zip(decibels(a), decibels(b)))


def check_bytes(record, what):
    plan, measured = record["plan"]["peak_bytes"], record["measured"]
    bench.check(plan == measured["peak_bytes"], f"{what}: planned {plan}, counted {measured['peak_bytes']}")
    off = abs(plan["total"] - measured["driver_bytes"])
    bench.check(not REAL or off <= 0.01 * plan["total"] + 8 * MIB,
                f"{what}: planned {plan['total'] / MIB:.1f} MiB, by the driver {measured['driver_bytes'] / MIB:.1f} MiB")


def find_card():
    result = bench.run("reconstruct", bench.path("first.npy"), *CASES["blurs"], "--device", CARD, "--json", "-", "--quiet")
    if result.status and not os.environ.get("TESSERA_REQUIRE_GPU") and "--device cuda" in result.err:
        shutil.rmtree(bench.folder, ignore_errors=True)
        skip(result.err.strip())
    bench.check(result.status == 0, f"there is a card: {result}")


def check_case(name, args):
    host = run("host.npy", *args, "--precision", "fp32", device="cpu")
    card = run("card.npy", *args, "--precision", "fp32")
    half = run("half.npy", *args)
    again = run("again.npy", *args)
    if not (host and card and half and again):
        return
    bench.check(furthest(host, card) <= 0.01, f"{name}: fp32 and the CPU differ by {furthest(host, card):.5f} dB at most")
    bench.check(furthest(host, half) <= 0.02, f"{name}: half precision and the CPU differ by {furthest(host, half):.5f} dB at most")
    check_bytes(half, name)
    same = bench.path("half.npy").read_bytes() == bench.path("again.npy").read_bytes()
    bench.check(same, f"{name}: two runs give the same bits")


def least_memory(*args):
    """The limit that the refusal of a smaller one names, which suffices for the weights only; it must suffice for slabs."""
    small, env = ("24M", {}) if REAL else ("44M", {"TESSERA_QUEUE": "1"})
    refusal = bench.run("reconstruct", bench.path("none.npy"), *args, "--device", CARD, "--memory", small, "--quiet", env=env)
    named = re.search(r"--memory (\d+M) would do", refusal.err)
    bench.check(refusal.status == 1 and named, f"{small} are refused, and what would do is named: {refusal}")
    return named.group(1) if named else "64M"


def check_slabs():
    args = ("--problem", "tomo3d", "--size", "128", "--angles", "30", "--iterations", "2")
    for prior in ("slices", "volume"):
        limit = least_memory(*args, "--prior", prior)
        free = run("free.npy", *args, "--prior", prior)
        tight = run("tight.npy", *args, "--prior", prior, "--memory", limit)
        if not (free and tight):
            continue
        plan = tight["plan"]
        off = np.abs(np.load(bench.path("free.npy")) - np.load(bench.path("tight.npy"))).max()
        bench.check(plan.get("slabs", 0) > 1 and plan["peak_bytes"]["total"] <= int(limit[:-1]) * MIB and furthest(free, tight) <= 0.01,
                    f"{prior} within {limit}: {plan.get('slabs')} slabs, {plan['peak_bytes']['total'] / MIB:.1f} MiB, "
                    f"{furthest(free, tight):.5f} dB and {off:.1e} from the whole")
        check_bytes(tight, f"{prior} within {limit}")


find_card()
for case, options in CASES.items():
    check_case(case, options)
check_slabs()
bench.finish()
