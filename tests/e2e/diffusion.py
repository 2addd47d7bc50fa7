"""diffusion.py PROGRAM: weight files of diffusion networks. They are converted and listed, denoise says what they are for, and a step of the
network that was converted gives what PyTorch computed (tests/data/networks, through the program diffusion_rates beside PROGRAM)."""
import pathlib
import subprocess
import sys

from support import Bench, np, read_metadata, read_safetensors, write_pth, write_safetensors

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "networks"
LIMIT = 1e-4  # of the largest value, in fp32
GAMMA, SIDE, CHANNELS = 0.83, 128, 3

bench = Bench(sys.argv[1])
dump = read_safetensors(DATA / "diffusion.safetensors")
network = {name: array for name, array in dump.items() if name.startswith("denoise_fn.")}
buffers = {name: np.linspace(1, 0, 2000, dtype=np.float32) for name in ("gammas", "sqrt_recip_gammas", "posterior_log_variance_clipped")}
bare = {name.removeprefix("denoise_fn."): array for name, array in network.items()}

# --- as published: .pth with the buffers of a schedule -------------------------------------------------------------------

models = bench.path("models")
models.mkdir()
for form, weights, legacy in (("published", {**network, **buffers}, False), ("legacy", network, True), ("bare", {**buffers, **bare}, False)):
    source, target = write_pth(bench.path(f"{form}.pth"), weights, legacy), models / f"{form}.safetensors"
    record = (bench.record("convert", source, target) or {}).get("convert", {})
    bench.check(record.get("architecture") == "diffusion" and record.get("channels") == CHANNELS and record.get("tensors") == len(weights),
                f"{form}: convert knows it: {record}")
    copied = read_safetensors(target)
    bench.check(copied.keys() == weights.keys() and all(np.array_equal(copied[n], weights[n]) for n in weights), f"{form}: all tensors are copied")
listed = {m["name"]: m for m in bench.record("info", env={"TESSERA_MODELS": str(models)})["info"]["models"]}
values = sum(array.size for array in network.values())
for form in ("published", "legacy", "bare"):
    entry = listed.get(form, {})
    bench.check(entry.get("architecture") == "diffusion" and entry.get("parameters") == values, f"{form}: info lists it: {entry}")

# --- the wrong verb, and damaged files -------------------------------------------------------------------------------------

np.save(bench.path("in.npy"), np.zeros((32, 32), np.float32))
for form, weights in (("whole", network), ("damaged", dict(list(network.items())[:40]))):
    source = write_safetensors(bench.path(f"{form}.safetensors"), weights)
    result = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", source, "--sigma", "0.1")
    bench.check_refused(result, 1, f"{form}.safetensors", "diffusion network", "fill")
    bench.check(not bench.path("out.npy").exists(), f"{form}: nothing is written")
record = bench.record("convert", bench.path("damaged.safetensors"), bench.path("copy.safetensors"))
bench.check(record and "architecture" not in record["convert"], "a damaged file is converted without a name for it")

# --- a step against PyTorch --------------------------------------------------------------------------------------------------

rates = pathlib.Path(sys.argv[1]).resolve().parent / "diffusion_rates"
if rates.exists():
    write_safetensors(bench.path("heads.safetensors"), {**network, **buffers}, {"num_head_channels": "4"})
    bench.record("convert", bench.path("heads.safetensors"), bench.path("net.safetensors"))
    bench.check(read_metadata(bench.path("net.safetensors")).get("num_head_channels") == "4", "convert keeps the metadata")
    i = np.arange(SIDE * SIDE * CHANNELS, dtype=np.int64)
    ((i * 2654435761 % 2**32 // 2**8) / 2**23 - 1).astype(np.float32).tofile(bench.path("in.raw"))
    subprocess.run([rates, f"model={bench.path('net.safetensors')}", f"gamma={GAMMA}", f"side={SIDE}", f"in={bench.path('in.raw')}",
                    f"out={bench.path('out.raw')}", "repeats=1", "threads=2"], check=True)
    got = np.fromfile(bench.path("out.raw"), np.float32)
    want = read_safetensors(DATA / "diffusion_128.safetensors")["0.out"].ravel()
    error = np.abs(got - want).max() / np.abs(want).max()
    bench.check(got.size == want.size and error <= LIMIT, f"{SIDE} x {SIDE}: off by {error:.2e} of the largest value")
bench.finish()
