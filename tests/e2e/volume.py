"""Volumes with a 3-D network as their prior: compares windows with the whole and planned with counted bytes; limits, the
published settings, a file of 3-D weights, bad input."""
import math
import sys

from support import MIB, Bench, dncnn, np, write_safetensors

bench = Bench(sys.argv[1])
out = bench.path("out.npy")


def run(*args, **more):
    """The record and the volume."""
    record = bench.record("reconstruct", out, "--problem", "tomo3d", *args, **more)
    return record, np.load(out) if record else None


def check_bytes(record, text):
    planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    bench.check(planned == counted, f"{text}: planned {planned['total']} = counted {counted['total']}")


# --- a 2-D network made 3-D -----------------------------------------------------------------------------------------

base = ["--size", "44", "--angles", "20", "--iterations", "2", "--prior", "volume"]
whole, volume = run(*base)
level, better = run(*base, "--inflate", "level")
if whole and level:
    bench.check(whole["plan"]["tile"] == [48, 48, 48] and whole["plan"]["tiles"] == 1 and whole["reconstruct"]["prior"] == "volume",
                "what fits goes whole, padded to the network's grid")
    bench.check(whole["reconstruct"]["inflation"] == "halves" and level["quality"]["psnr_db"] > whole["quality"]["psnr_db"] + 0.5,
                f"made level: {level['quality']['psnr_db']:.2f} dB, by halves: {whole['quality']['psnr_db']:.2f} dB")
    check_bytes(whole, "whole")
tiled, same = run(*base, "--tile", "16", "--halo", "exact")
if whole and tiled:
    bench.check(tiled["plan"]["tile"] == [16, 32, 32] and tiled["plan"]["tiles"] == 12 and np.array_equal(volume, same),
                "windows with exact halos give the bits of the whole volume")
    check_bytes(tiled, "tiles")
slabs, near = run(*base, "--tile", "8x48x48")
if whole and slabs:
    bench.check(slabs["plan"]["tiles"] == 6 and slabs["plan"]["halo_depth"] == 0, "slabs of eight slices need no halo")
    bench.check(np.abs(near - volume).max() < 1e-4, f"they differ from the whole by at most {np.abs(near - volume).max():.1e}")

limit = 70
plan = bench.record("plan", "reconstruct", out, "--problem", "tomo3d", *base, "--memory", f"{limit}M")
limited, near = run(*base, "--memory", f"{limit}M")
if whole and limited and plan:
    bench.check(whole["measured"]["peak_bytes"]["total"] > limit * MIB, "the whole takes more than the limit")
    bench.check(limited["measured"]["peak_bytes"]["total"] <= limit * MIB and limited["plan"]["tiles"] > 1, "a limit makes windows and is kept")
    bench.check(plan["plan"]["peak_bytes"] == limited["plan"]["peak_bytes"] and plan["plan"]["tile"] == limited["plan"]["tile"], "plan says the same")
    bench.check(abs(limited["quality"]["psnr_db"] - whole["quality"]["psnr_db"]) < 0.01, "PSNR stays")
    check_bytes(limited, "limited")
apart, same = run(*base, "--memory", f"{limit}M", env={"TESSERA_QUEUE": "1"})
if limited and apart:
    check_bytes(apart, "a device with memory of its own")
    bench.check(np.abs(same - volume).max() < 1e-4, "and the same volume")

# --- the published settings -----------------------------------------------------------------------------------------

record, volume = run("--size", "32", "--angles", "12", "--preset", "deepinv", "--iterations", "3")
plan = bench.record("plan", "reconstruct", out, "--problem", "tomo3d", "--size", "32", "--preset", "deepinv")
if record and plan:
    own = record["reconstruct"]
    bench.check(own["prior"] == "volume" and own["inflation"] == "halves" and own["init"] == "cg", "deepinv: a 3-D network, from conjugate gradients")
    bench.check(own["sigma"] == own["last_sigma"] == 0.03 and own["relax"] == 10 and own["inner"] == 0, "deepinv: sigma 0.03, relaxation 10")
    bench.check(abs(own["step"] * own["norm_squared"] - 0.99) < 1e-6 and 0 < own["cg_iterations"] <= 50, "deepinv: the step is 0.99 / |A|^2")
    bench.check(plan["reconstruct"]["iterations_most"] == 40, "deepinv: 40 iterations")
    bench.check(volume.min() >= 0 and volume.max() <= 1 and all(math.isfinite(i["psnr_db"]) for i in own["iterations"]), "deepinv: clamped")
    check_bytes(record, "deepinv")

# --- a file of 3-D weights ------------------------------------------------------------------------------------------

deep = {}
for name, array in dncnn(1, 3, 8).items():
    deep[name] = np.repeat(array[:, :, None], 3, axis=2) / 3 if array.ndim == 4 else array
write_safetensors(bench.path("deep.safetensors"), deep)
deep = ["--size", "28", "--angles", "8", "--iterations", "2", "--model", bench.path("deep.safetensors")]
whole, volume = run(*deep)
tiled, same = run(*deep, "--tile", "8x12x16", "--halo", "exact")
if whole and tiled:
    bench.check(whole["reconstruct"]["prior"] == "volume" and "inflation" not in whole["reconstruct"], "3-D weights are taken as they are")
    bench.check(tiled["plan"]["tiles"] > 4 and np.array_equal(volume, same), "and windows repeat them bit for bit")

# --- bad input ------------------------------------------------------------------------------------------------------

small = ["--problem", "tomo3d", "--size", "24"]
cases = [
    (2, [*small, "--prior", "planes"], ["--prior planes", "slices"]),
    (2, [*small, "--prior", "volume", "--inflate", "twice"], ["--inflate twice", "level"]),
    (2, [*small, "--prior", "volume", "--batch", "4"], ["--batch 4"]),
    (2, [*small, "--prior", "slices", "--model", bench.path("deep.safetensors")], ["--prior slices"]),
    (2, [*small, "--tile", "8x16x24"], ["--tile 8x16x24", "--prior volume"]),
    (2, [*small, "--prior", "volume", "--tile", "0x8x8"], ["--tile 0x8x8", "DxHxW"]),
    (2, ["--problem", "deblur", "--prior", "volume"], ["--prior volume", "image"]),
    (2, ["--problem", "tomo2d", "--model", bench.path("deep.safetensors")], ["volumes"]),
    (1, [*small, "--prior", "volume", "--memory", "20M"], ["--memory 20M", "of weights"]),
    (1, [*small, "--prior", "volume", "--model", "random:unet"], ["unet"]),
]
for status, args, words in cases:
    bench.check_refused(bench.run("reconstruct", bench.path("lost.npy"), *args), status, *words)
bench.check(not bench.path("lost.npy").exists(), "nothing is written")
bench.finish()
