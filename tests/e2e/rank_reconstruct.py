"""rank_reconstruct.py PROGRAM DIST_TOOL MODULE deblur|blurs|tomo2d|tomo3d|volume|measured|faults: one reconstruction that several ranks share, under a real mpirun. The result is
that of one rank; the memory of a rank is its part's, and what was planned. Skips without mpirun or without the MPI module."""
import json
import os
import shutil
import signal
import sys
import time

import numpy as np

import scan_scene
from rank_launcher import open_bench, ranks_of, said
from rank_reconstruct_job import Job, models
from support import leftovers, picture, to_integers, write_png

CLOSE = 1e-6  # |one - many| / |one|, where the order of sums depends on the ranks
FREE = 2e-2  # the same after 50 steps of conjugate gradients from nothing, which amplify every rounding error


def check_falls(bench, launcher, program, name, *words):
    """`plan` says what each rank needs: without weights, half of it with twice the ranks, nearly. (Rows by the speed of ranks would differ.)"""
    needs = {}
    for ranks in (1, 2, 4):
        status, out, err = launcher.run(ranks, program, "plan", "reconstruct", bench.path("x.npy"), "--problem", name, *words, "--threads", "1", "--json", "-", "--quiet",
                                       env={"TESSERA_SPEEDS": "equal"})
        if not bench.check(status == 0 and not said(err), f"plan {name} with {ranks} ranks: {status} {err[:300]}"):
            return
        peak = json.loads(out)["plan"]["peak_bytes"]
        needs[ranks] = peak["total"] - peak["weights"]
    print(f"{os.path.basename(name)}: bytes of a rank besides weights:", ", ".join(f"{ranks} ranks {needs[ranks] / 2**20:.1f} MiB" for ranks in needs))
    bench.check(needs[2] < 0.65 * needs[1] and needs[4] < 0.45 * needs[1], f"{name}: memory falls: {needs}")


def deblur(bench, launcher, program):
    big, small = models(bench)
    image = bench.path("image.png")
    write_png(image, to_integers(picture(113, 64), np.uint8))

    def job(*words):
        return Job(bench, launcher, program, "deblur", *words)

    colours = job("--size", "124x50", "--operators", "3", "--iterations", "2", *big)
    for ranks in (2, 3, 4):
        colours.check(ranks)
    odd = job("--size", "97x34", "--operators", "2", "--iterations", "2", *small)
    for ranks in (2, 3, 6, 7):
        odd.check(ranks)
    for words, ranks in ((("--preset", "deepinv", "--size", "61x40", "--tolerance", "1e-9"), 3), (("--image", image, "--init", "adjoint"), 4),
                         (("--image", image, "--size", "70", "--step", "auto", "--init", "cg"), 3), (("--size", "48", "--max-seconds", "1000", "--init", "mean"), 2)):
        job(*words, "--operators", "2", "--iterations", "2", *small).check(ranks)
    check_falls(bench, launcher, program, "deblur", "--size", "768x512", "--operators", "4", *small)


def tomo2d(bench, launcher, program):
    big, small = models(bench)

    def job(*words):
        return Job(bench, launcher, program, "tomo2d", "--angles", "13", "--iterations", "2", *words)

    one = job("--size", "97", *big)
    for ranks in (2, 3):
        one.check(ranks)
    one = job("--size", "86", *small)
    for ranks in (2, 4, 6, 7):
        one.check(ranks)
    for words, ranks in ((("--preset", "deepinv"), 3), (("--init", "cg"), 2), (("--init", "adjoint", "--inner", "0", "--tolerance", "1e-9"), 3)):
        job("--size", "82", *words, *big).check(ranks)
    check_falls(bench, launcher, program, "tomo2d", "--size", "512", *small)


def tomo3d(bench, launcher, program):
    """With the network that comes with the program: those of random weights amplify differences."""
    _, small = models(bench)

    def job(*words, close=CLOSE):
        return Job(bench, launcher, program, "tomo3d", "--angles", "11", *words, close=close)

    one = job("--size", "16", "--iterations", "2")
    for ranks in (2, 3, 4, 6, 7):
        one.check(ranks)
    job("--size", "16", "--iterations", "2", "--init", "adjoint", "--inner", "3", "--tile", "16").check(3)
    job("--size", "16", "--iterations", "2", "--preset", "deepinv", "--prior", "slices", close=FREE).check(2)
    check_falls(bench, launcher, program, "tomo3d", "--size", "128", "--angles", "40", *small)


def volume(bench, launcher, program):
    """3-D networks: slabs of slices, which begin at multiples of 8 for DRUNet, and anywhere for DnCNN."""
    _, small = models(bench)

    def job(*words, close=CLOSE):
        return Job(bench, launcher, program, "tomo3d", "--angles", "11", "--iterations", "2", "--prior", "volume", *words, close=close)

    one = job("--size", "28")
    for ranks in (2, 3, 4):
        record = one.check(ranks)
        bench.check(record and all(p["first_slice"] % 8 == 0 for p in record["reconstruct"]["parts"]), f"{ranks} ranks: slabs begin at multiples of the network's grid")
    one = job("--size", "17", *small, close=1e-5)  # random weights amplify the differences of the projections
    for ranks in (2, 3, 7):
        one.check(ranks)
    job("--size", "16", "--preset", "deepinv", close=FREE).check(2)
    check_falls(bench, launcher, program, "tomo3d", "--size", "64", "--angles", "20", "--prior", "volume", *small)
    for says, ranks, good, words in (("slab has 8 of them", 4, 1, ()), ("slab of the volume; leave it out", 2, 2, ("--tile", "8"))):
        status, _, err = launcher.run(ranks, program, "reconstruct", bench.path("x.npy"), "--problem", "tomo3d", "--size", "16", "--angles", "11", "--prior", "volume", *words, "--quiet")
        bench.check(status == good and len(said(err)) == 1 and says in err, f"{says}: {status} {err[:300]}")


def ball_views(vectors, rows, columns, radius):
    """Parallel rays through a ball of density 1 around the origin."""
    right, down = np.arange(columns) - (columns - 1) / 2, np.arange(rows) - (rows - 1) / 2
    at = vectors[:, None, None, 3:6] + right[None, None, :, None] * vectors[:, None, None, 6:9] + down[None, :, None, None] * vectors[:, None, None, 9:12]
    near = (at * vectors[:, None, None, :3]).sum(-1)
    return 2 * np.sqrt(np.maximum(radius ** 2 - ((at * at).sum(-1) - near ** 2), 0))


def measured(bench, launcher, program):
    """A sinogram and parallel views with a truth: ranks read the same files, and each keeps its part."""
    _, small = models(bench)
    done = bench.run("reconstruct", bench.path("x.npy"), "--problem", "tomo2d", "--size", "90", "--angles", "12", "--iterations", "1", "--save-measurement", bench.path("m.npy"), "--quiet")
    bench.check(done.status == 0, f"a sinogram: {done}")
    sinogram = {"operator": "radon", "angles": [15.0 * i for i in range(12)], "measurement": "m.npy", "range": [0, 1], "noise": 0.01, "circle": True}
    turns = np.pi * np.arange(14) / 14
    zero = 0 * turns
    vectors = np.stack([np.sin(turns), -np.cos(turns), zero, zero, zero, zero, np.cos(turns), np.sin(turns), zero, zero, zero, zero + 1], 1)
    views = ball_views(vectors, 18, 26, 6.0)
    z, y, x = np.meshgrid(np.arange(15) - 7, np.arange(20) - 9.5, np.arange(22) - 10.5, indexing="ij")
    for name, array in (("views", views), ("vectors", vectors), ("truth", (x * x + y * y + z * z <= 36) * 1.0)):
        np.save(bench.path(f"{name}.npy"), array.astype(np.float64 if name == "vectors" else np.float32))
    cube = {"operator": "parallel3d", "vectors": "vectors.npy", "volume": [15, 20, 22], "measurement": "views.npy", "truth": "truth.npy", "range": [0, 1.2], "noise": 0.2}
    np.save(bench.path("thin_views.npy"), ball_views(vectors, 3, 26, 6.0).astype(np.float32))
    thin = {**{k: v for k, v in cube.items() if k != "truth"}, "volume": [3, 20, 22], "measurement": "thin_views.npy"}
    estimated = [{k: v for k, v in problem.items() if k not in ("range", "noise")} for problem in (sinogram, cube)]
    for name, problem, close, counts in (("sinogram", sinogram, 0, (2,)), ("cube", cube, CLOSE, (5,)), ("thin", thin, CLOSE, (2, 3)), ("estimated", estimated[0], 0, (3,)),
                                         ("estimated_cube", estimated[1], 1e-4, (2, 3))):
        file = bench.path(f"{name}.json")
        file.write_text(json.dumps(problem))
        one = Job(bench, launcher, program, file, "--iterations", "2", close=close)
        for ranks in counts:
            one.check(ranks)
    # So many views that the estimate of their noise takes more than the network: all ranks plan it.
    many = 8 * np.sqrt(np.maximum(1 - np.linspace(-2, 2, 64) ** 2, 0)) + np.random.default_rng(1).normal(0, 0.1, (2000, 64))
    np.save(bench.path("many.npy"), many.astype(np.float32))
    file = bench.path("many.json")
    file.write_text(json.dumps({"operator": "radon", "angles": {"from": 0, "to": 180, "count": 2000}, "measurement": "many.npy", "range": [0, 1]}))
    Job(bench, launcher, program, file, "--iterations", "1", *small).check(2)
    status, _, err = launcher.run(16, program, "reconstruct", bench.path("x.npy"), "--problem", bench.path("cube.json"), "--quiet")
    bench.check(status == 1 and len(said(err)) == 1 and "too many for 14 views" in err, f"more ranks than views: {status} {err[:300]}")


def blurred(sharp, kernel):
    """What is measured of a sharp picture: where the whole kernel lies inside."""
    rows, columns = (side // 2 for side in kernel.shape)
    height, width = sharp.shape[0] - 2 * rows, sharp.shape[1] - 2 * columns
    out = 0
    for y in range(kernel.shape[0]):
        for x in range(kernel.shape[1]):
            out = out + kernel[y, x] * sharp[2 * rows - y:2 * rows - y + height, 2 * columns - x:2 * columns - x + width]
    return out


def check_ways(bench, launcher, program):
    """By halos or by the spectrum: the plan takes the cheaper, says so, and falls back where halos do not fit. Both send the bytes that follow from the sizes."""
    jobs = {}
    one = Job(bench, launcher, program, bench.path("known.json"), "--iterations", "2", close=CLOSE)
    for way in ("halo", "spectrum"):
        record = jobs[way] = one.check(3, env={"TESSERA_BLURS": way})
        if record:
            own = record["reconstruct"]
            bench.check(own["blur_exchange"]["way"] == way and own["blur_exchange"]["because"] == "TESSERA_BLURS" and own["blur_exchange"]["rows"] == 3, f"{way}: {own['blur_exchange']}")
            bench.check(("halos of 3 rows" if way == "halo" else "columns of their spectrum") in own["parts_reason"], f"{way}: {own['parts_reason']}")
    sent = {way: [part["gradient_sent_bytes"] for part in record["reconstruct"]["parts"]] for way, record in jobs.items() if record}
    print("bytes sent in two data steps of three blurs of 101 x 50:", sent)
    bench.check(len(sent) == 2 and all(0 < 3 * a < b for a, b in zip(sent["halo"], sent["spectrum"])), f"halos send less than a third: {sent}")
    record = one.check(2)
    if record:
        way = record["reconstruct"]["blur_exchange"]
        faster = min(("spectrum", "halo"), key=lambda name: way[f"{name}_seconds"])
        bench.check(way["because"] == "cost" and way["way"] == faster and 0 < way["halo_bytes"] < way["spectrum_bytes"] and "ms a step" in record["plan"]["reason"], f"the cheaper way: {way}")
    check_fallback(bench, launcher, program)


RESERVE = 4 << 20  # that a limit keeps beside the plan


def check_fallback(bench, launcher, program):
    """Kernels of one column whose reach is more than a strip: halos need more memory than the spectrum. Between both, the spectrum is taken."""
    kernel = np.zeros((61, 1))
    kernel[::2] = 1
    np.save(bench.path("tall.npy"), kernel)
    np.save(bench.path("tall_m.npy"), picture(96, 400).astype(np.float32))
    bench.path("tall.json").write_text(json.dumps({"operator": "blur", "kernel": "tall.npy", "measurement": "tall_m.npy", "range": [0, 1], "noise": 0.02}))
    words = ("--problem", bench.path("tall.json"), *models(bench)[1], "--iterations", "2", "--threads", "1", "--json", "-", "--quiet")

    def plan(way, *more):
        status, out, err = launcher.run(3, program, "plan", "reconstruct", bench.path("x.npy"), *words, *more, env={"TESSERA_BLURS": way})
        return json.loads(out) if bench.check(status == 0 and not said(err), f"plan {way} {more}: {status} {err[:300]}") else None

    records = [plan(way) for way in ("spectrum", "halo")]
    if not all(records):
        return
    low, high = (max(part["planned_bytes"] for part in record["reconstruct"]["parts"]) for record in records)
    record = low < high and plan("halo", "--memory", f"{((low + high) // 2 + RESERVE) // 1024}K")
    bench.check(record and record["reconstruct"]["blur_exchange"]["way"] == "spectrum" and record["reconstruct"]["blur_exchange"]["because"] == "memory" and "do not fit" in record["plan"]["reason"]
                and record["plan"]["peak_bytes"]["total"] == low, f"halos that do not fit: {low} {high} {record}")


def blurs(bench, launcher, program):
    """Measured blurs: kernels of any shape, with both boundaries; ranks find the same exposures, range, noise and weights. A circular blur
    has the bits of one rank. With an unknown boundary, conjugate gradients add up over the ranks. The network comes with the program: random
    weights amplify differences."""
    _, small = models(bench)
    draw = np.random.default_rng(5)
    kernels = [draw.random((7, 9)), np.pad(draw.random((3, 5)), ((0, 4), (2, 2))), np.eye(7)[:, 1:6]]
    sharp = picture(107, 58)
    for i, kernel in enumerate(kernels):
        np.save(bench.path(f"k{i}.npy"), kernel)
    seen = [blurred(sharp[:, 4 - k.shape[1] // 2:58 - 4 + k.shape[1] // 2], k / k.sum()) for k in kernels]
    seen = [(s + 0.01 * (1 + 3 * (i == 1)) * draw.standard_normal(s.shape)) * (1 + 0.25 * i) for i, s in enumerate(seen)]
    np.save(bench.path("m.npy"), np.concatenate(seen).astype(np.float32))
    np.save(bench.path("bands.npy"), (100 * np.concatenate(seen)[..., :2] * [1, 0.1]).astype(np.float32))
    np.save(bench.path("truth.npy"), sharp[3:-3, 4:-4].astype(np.float32))
    write_png(bench.path("m.png"), to_integers(seen[0], np.uint8))
    hot = 200 * seen[0]
    hot[5::11, 20, 0] = 5000  # beside the borders between ranks, too
    np.save(bench.path("hot.npy"), hot.astype(np.float32))
    holes = np.concatenate(seen)
    holes[30:101:7, 5:40, 1] = np.nan  # of the first blur; whole rows of the second
    holes[101:130] = np.nan
    np.save(bench.path("holes.npy"), holes.astype(np.float32))
    framed = to_integers(np.clip(1.7 * seen[0], 0, 1), np.uint8)
    framed[:33] = framed[:, -6:] = 0
    write_png(bench.path("framed.png"), framed)
    files = {"kernels": [f"k{i}.npy" for i in range(3)], "measurement": "m.npy"}
    known = {"range": [0, 1], "noise": 0.02, "gains": [1, 1.25, 1.5]}
    problems = {"circular": {**files, **known, "truth": "truth.npy", "boundary": "circular"}, "gaussian": {"angles": [20], "sigma": [2, 1], "measurement": "m.png", "boundary": "circular"},
                "known": {**files, **known, "truth": "truth.npy"}, "estimated": {**files, "truth": "truth.npy"}, "bands": {**files, "measurement": "bands.npy"},
                "hot": {"angles": [30], "sigma": [3, 2], "measurement": "hot.npy"}, "wide": {"angles": [30], "sigma": [9, 2], "measurement": "m.png", "noise": 5},
                "holes": {**files, "measurement": "holes.npy", "truth": "truth.npy"}, "framed": {"kernel": "k0.npy", "measurement": "framed.png"}}
    for name, problem in problems.items():
        bench.path(f"{name}.json").write_text(json.dumps({"operator": "blur", **problem}))
    # Random weights fit no data; with a limit of time the noise is not raised for that, so that many ranks can share a small network.
    fast = (*small, "--max-seconds", "1000")
    for name, close, words, counts in (("circular", 0, small, (2, 3, 4, 7)), ("gaussian", 0, small, (3,)), ("known", CLOSE, (), (2, 3)), ("known", CLOSE, ("--inner", "0", "--tolerance", "1e-9"), (3,)),
                                       ("known", CLOSE, ("--init", "adjoint"), (2,)), ("estimated", CLOSE, (), (3,)), ("estimated", CLOSE, fast, (2, 4, 7)), ("bands", CLOSE, fast, (3,)), ("hot", CLOSE, fast, (2, 3, 7)), ("wide", CLOSE, (), (2, 3)),
                                       ("holes", CLOSE, fast, (2, 7)), ("framed", CLOSE, fast, (3,))):
        one = Job(bench, launcher, program, bench.path(f"{name}.json"), "--iterations", "2", *words, close=close)
        for ranks in counts:
            record = one.check(ranks)
            if record and record["reconstruct"].get("blur_exchange", {}).get("way") == "spectrum":  # the other way, too
                one.check(ranks, env={"TESSERA_BLURS": "halo"})
    check_ways(bench, launcher, program)
    np.save(bench.path("large.npy"), np.tile(picture(384, 512), (4, 1, 1)).astype(np.float32))
    large = bench.path("large.json")
    for boundary in ("circular", "unknown"):
        large.write_text(json.dumps({"operator": "blur", "kernels": ["k0.npy"] * 4, "measurement": "large.npy", "boundary": boundary, "range": [0, 1], "noise": 0.01}))
        check_falls(bench, launcher, program, large, *small)


def slice_of_volume(bench, rows=1):
    """A fan beam, as a volume of one slice; with more rows, the object is higher."""
    vectors = scan_scene.orbit(np.arange(12) * 30.0)
    vectors[:, :6] *= 4
    np.save(bench.path("fan_vectors.npy"), vectors)
    np.save(bench.path(f"fan{rows}.npy"), scan_scene.views(vectors, rows, 160, [(0.01, 0, 0, 0, 36)]).astype(np.float32))
    path = bench.path(f"fan{rows}.json")
    path.write_text(json.dumps({"operator": "cone", "vectors": "fan_vectors.npy", "volume": [1, 96, 96], "measurement": f"fan{rows}.npy", "noise": 0.01}))
    return path


def check_refusals(bench, launcher, program):
    """One line, status 1, and nothing is written. The descriptor 9 of rank 1 is another folder than that of the others."""
    _, small = models(bench)
    script, other, out = bench.path("rank.sh"), bench.path("other"), bench.path("x.npy")
    folder = bench.path("models")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec 9<"$ONE"; else exec 9<"$OTHERS"; fi\nexec {program} "$@"\n')
    other.mkdir()
    folder.mkdir()
    shutil.copy(bench.path("dncnn.safetensors"), folder)
    nine, size = "/proc/self/fd/9", ("--size", "48", "--iterations", "2")
    for says, words in (
            ("rank 1: /proc/self/fd/9/dncnn.safetensors", (out, "--problem", "deblur", *size, "--model", nine + "/dncnn.safetensors")),
            ("rank 1: /proc/self/fd/9/no", (nine + "/dncnn.safetensors/no/x.npy", "--problem", "deblur", *size, *small)),
            ("too many for an image of 24 rows", (out, "--problem", "deblur", "--size", "24", *small)),
            ("start it once, without mpirun", (out, "--problem", slice_of_volume(bench), *small)),
            ("give \"volume\": [3, 96, 96], or start it once", (out, "--problem", slice_of_volume(bench, 3), *small)),
            ("too many for 2 views", (out, "--problem", "tomo2d", *size, "--angles", "2", *small)),
            ("is too little", (out, "--problem", "deblur", *size, *small, "--memory", "1M"))):
        status, printed, err = launcher.run(3, "sh", script, "reconstruct", *words, "--quiet", env={"ONE": str(other), "OTHERS": str(folder)})
        lines = said(err)
        if says.endswith("/no"):  # the folder is not there, on rank 1 for another reason than on the others
            says = "/proc/self/fd/9/dncnn.safetensors/no"
        bench.check(status == 1 and printed == "" and len(lines) == 1 and says in lines[0], f"{says}: {status} {printed} {err[:500]}")
        bench.check(not out.exists() and not any(other.iterdir()) and not leftovers(bench.folder), f"{says}: writes nothing")


def check_output(bench, launcher, program):
    """An output that only one rank cannot write, and one that rank 0 cannot."""
    _, small = models(bench)
    good, script = bench.path("good"), bench.path("fold.sh")
    good.mkdir()
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = "$BAD" ]; then exec 9</dev/null; else exec 9<"$GOOD"; fi\nexec {program} "$@"\n')
    for bad in ("0", "2"):
        status, printed, err = launcher.run(3, "sh", script, "reconstruct", "/proc/self/fd/9/x.npy", "--problem", "deblur", "--size", "48", "--iterations", "2", *small, "--quiet",
                                            env={"BAD": bad, "GOOD": str(good)})
        lines = said(err)
        bench.check(status == 1 and len(lines) == 1 and f"rank {bad}: /proc/self/fd/9" in lines[0], f"output of rank {bad}: {status} {err[:500]}")
        bench.check(not any(good.iterdir()), f"output of rank {bad}: writes nothing")


def check_stop(bench, launcher, program):
    """A rank that is asked to stop does not leave the others waiting; a lost rank ends the job."""
    big, small = models(bench)
    np.save(bench.path("m.npy"), picture(160, 120, 1).astype(np.float32))
    blur = bench.path("measured.json")
    blur.write_text(json.dumps({"operator": "blur", "angles": [0], "sigma": [2, 1], "measurement": "m.npy"}))
    for how, words in ((signal.SIGINT, (blur, *small)), (signal.SIGKILL, (blur, *small)), (signal.SIGINT, ("deblur", "--size", "160", "--operators", "2", *big)), (signal.SIGINT, ("tomo3d", "--size", "32", "--angles", "9", *small)),
                       (signal.SIGKILL, ("deblur", "--size", "160", "--operators", "2", *big)), (signal.SIGKILL, ("tomo2d", "--size", "160", "--angles", "30", *big)),
                       (signal.SIGKILL, ("tomo3d", "--size", "32", "--angles", "9", *small))):
        output = bench.path("stopped.npy")
        process = launcher.start(3, program, "reconstruct", output, "--problem", *words, "--iterations", "100000", "--threads", "1", "--quiet")
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(0.5)
        bench.check(len(pids) == 3 and process.poll() is None, f"{how.name} {os.path.basename(words[0])}: the job runs")
        if process.poll() is None:
            os.kill(pids[2], how)
        begin = time.monotonic()
        status, _, err = launcher.end(process, 60)
        bench.check(status not in (0, None) and ("stopped" in err if how == signal.SIGINT else "rank 2" in err), f"{how.name} {os.path.basename(words[0])}: {status} {err[:500]}")
        bench.check(time.monotonic() - begin < 30 and not output.exists(), f"{how.name} {os.path.basename(words[0])}: ends, without a half-written output")
        if how == signal.SIGINT:
            bench.check(not leftovers(bench.folder), f"{how.name} {os.path.basename(words[0])}: no temporary file")
        for name in leftovers(bench.folder):
            shutil.rmtree(bench.path(name), ignore_errors=True)


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    parts = {"deblur": deblur, "blurs": blurs, "volume": volume, "measured": measured, "tomo2d": tomo2d, "tomo3d": tomo3d, "faults": lambda *all: (check_refusals(*all), check_output(*all), check_stop(*all))}
    parts[sys.argv[4]](bench, launcher, program)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
