"""blur_ranks.py PROGRAM [SIDE [KERNEL [REPEATS]]]: measured blurs with an unknown boundary on several ranks, by columns of the spectrum and by halos: seconds of the data step, bytes that a rank
sends in it, and how far the result is from that of one rank; beside that, how far the result of one rank moves if each measured value moves by one unit in its last place, or not. Both ways are run in turn, because other work on the machine disturbs them; the least and the median are printed. Needs mpirun."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ITERATIONS = 3


def problem(folder, side, kernel, blurs):
    """Patches of colours, as a camera behind these kernels sees them."""
    draw = np.random.default_rng(1)
    whole = side + kernel - 1
    sharp = np.kron(draw.random((whole // 16 + 1, whole // 16 + 1, 3)), np.ones((16, 16, 1)))[:whole, :whole]
    spectrum, seen = np.fft.rfft2(sharp, axes=(0, 1)), []
    for i in range(blurs):
        values = draw.random((kernel, kernel))
        np.save(folder / f"k{i}.npy", values)
        placed = np.zeros((whole, whole))
        placed[:kernel, :kernel] = values / values.sum()
        blurred = np.fft.irfft2(spectrum * np.fft.rfft2(placed)[..., None], s=(whole, whole), axes=(0, 1))[kernel - 1:, kernel - 1:]
        seen.append(blurred + 0.01 * draw.standard_normal(blurred.shape))
    np.save(folder / "m.npy", np.concatenate(seen).astype(np.float32))
    file = folder / "problem.json"
    file.write_text(json.dumps({"operator": "blur", "kernels": [f"k{i}.npy" for i in range(blurs)], "measurement": "m.npy", "range": [0, 1], "noise": 0.01}))
    return file


def moved(folder, file):
    """The result of one rank from measurements that differ by rounding."""
    values = np.load(folder / "m.npy")
    which = np.random.default_rng(3).integers(0, 3, values.shape)
    ways = (np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf)), values)
    np.save(folder / "m.npy", np.choose(which, ways).astype(np.float32))
    result = run(folder, file, 1, "")[2]
    np.save(folder / "m.npy", values)
    return result


def run(folder, file, ranks, way):
    words = [sys.argv[1], "reconstruct", folder / "out.npy", "--problem", file, "--iterations", ITERATIONS, "--threads", 1, "--json", folder / "record.json", "--quiet"]
    launcher = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TESSERA_BLURS": way}
    subprocess.run([str(word) for word in launcher + words], env=environment, cwd=folder, check=True)
    own = json.loads((folder / "record.json").read_text())["reconstruct"]
    sent = max((part["gradient_sent_bytes"] for part in own.get("parts", [])), default=0)
    return [step["gradient_seconds"] for step in own["iterations"]], sent / ITERATIONS, np.load(folder / "out.npy").astype(np.float64)


def main():
    side, kernel, repeats = (int(word) for word in (sys.argv[2:] + ["512", "25", "2"][len(sys.argv) - 2:]))
    print("| blurs | ranks | seconds, spectrum | halos | ratios | MB sent, spectrum | halos | ratio | off one rank, spectrum | halos |\n|" + "---|" * 10)
    for blurs in (1, 4):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            file = problem(folder, side, kernel, blurs)
            alone = run(folder, file, 1, "")[2]
            print(f"{blurs} blurs: measurements that differ by rounding move one rank by {np.linalg.norm(moved(folder, file) - alone) / np.linalg.norm(alone):.1g}", flush=True)
            for ranks in (2, 3, 4):
                seconds, sent, off = {}, {}, {}
                for way in ("spectrum", "halo") * repeats:
                    times, sent[way], result = run(folder, file, ranks, way)
                    seconds.setdefault(way, []).extend(times)
                    off[way] = np.linalg.norm(result - alone) / np.linalg.norm(alone)
                least, median = ({way: f(values) for way, values in seconds.items()} for f in (min, statistics.median))
                print(f"| {blurs} | {ranks} | {least['spectrum']:.2f}, {median['spectrum']:.2f} | {least['halo']:.2f}, {median['halo']:.2f} | "
                      f"{least['halo'] / least['spectrum']:.2f}, {median['halo'] / median['spectrum']:.2f} | "
                      f"{sent['spectrum'] / 1e6:.1f} | {sent['halo'] / 1e6:.1f} | {sent['halo'] / sent['spectrum']:.2f} | {off['spectrum']:.1g} | {off['halo']:.1g} |", flush=True)


main()
