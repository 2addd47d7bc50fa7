"""train_files.py PROGRAM: the files of a training run, and what a resumed run must not change.

No name stands for two files of a run, a file that is no log is kept, and nothing is written before a run is refused. A run
goes on with its seed, precision and images, or not at all. The plan is the fastest that fits.
"""
import json
import os
import shutil
import sys

import numpy as np

from support import Bench, picture, read_metadata, read_safetensors, to_integers, write_png

DNCNN = {"architecture": "dncnn", "channels": 1, "widths": [8], "depth": 4}


def make_images(bench):
    for name, seeds in (("images", range(4)), ("held", range(20, 22))):
        bench.path(name).mkdir()
        for seed in seeds:
            write_png(bench.path(name) / f"{seed}.png", to_integers(picture(48, 56, 3, seed), np.uint8))


def config(bench, name, **changes):
    keys = {"network": DNCNN, "data": {"folders": ["images"], "crop": 24, "workers": 1}, "batch": 4, "steps": 20,
            "checkpoint": {"every": 10}, "output": f"{name}.safetensors", "log": f"{name}.log", "device": "cpu", **changes}
    path = bench.path(f"{name}.json")
    path.write_text(json.dumps({key: value for key, value in keys.items() if value is not None}))
    return path


def contents(bench):
    """Every file of the folder with its bytes, and every folder."""
    return {p.relative_to(bench.folder): p.read_bytes() if p.is_file() else None for p in bench.folder.rglob("*")}


def refused(bench, what, path, *words, options=(), status=1):
    before = contents(bench)
    bench.check_refused(bench.run("train", path, "--quiet", *options), status, *words)
    bench.check(contents(bench) == before, f"{what}: nothing was written")


def check_keys(bench):
    """Keys without effect are refused with their names, and the largest seed is the same in the file and as an option."""
    refused(bench, "deviation_factor", config(bench, "a", deviation_factor=2), "a.json: deviation_factor: is not used")
    for validation, key in (({"sigma": [0.1]}, "sigma"), ({"every": 5}, "every")):
        refused(bench, key, config(bench, "a", validation=validation), f"validation.{key}: is not used without validation.folder")
    largest = 2**63 - 1
    for name, options, changes in (("file", (), {"seed": largest}), ("given", ("--seed", largest), {})):
        bench.check(bench.record("train", config(bench, f"seed-{name}", steps=1, **changes), *options), f"the largest seed, {name}")
    refused(bench, "seed", config(bench, "a", seed=-1), "seed", "from 0")
    same = read_safetensors(bench.path("seed-file.safetensors")), read_safetensors(bench.path("seed-given.safetensors"))
    bench.check(all(np.array_equal(same[0][key], same[1][key]) for key in same[0]), "both mean the same")


def check_misfits(bench):
    """Images that do not fit the network are refused together: how many there are, and the first two."""
    colour = {**DNCNN, "channels": 3}
    bench.path("mixed").mkdir()
    for seed in range(6):
        gray = seed in (1, 2, 4)
        write_png(bench.path("mixed") / f"{seed}.png", to_integers(picture(48, 20 if seed == 5 else 56, 1 if gray else 3, seed), np.uint8))
    refused(bench, "gray images", config(bench, "a", network=colour, data={"folders": ["mixed"], "crop": 24}),
            "1.png: has 1 channel, but the network has 3; 2 other files do not fit either", "2.png)", "exclude them")
    refused(bench, "one gray image", config(bench, "a", network=colour, data={"folders": ["mixed"], "exclude": ["1.png", "4.png"], "crop": 24}),
            "2.png: has 1 channel, but the network has 3; exclude it")
    refused(bench, "small images", config(bench, "a", data={"folders": ["mixed"], "crop": 52}), "0.png: has 56 x 48", "5 other files are too small as well", "1.png)", "exclude them")
    refused(bench, "a small image", config(bench, "a", data={"folders": ["mixed"], "crop": 24}), "5.png: has 20 x 48", "exclude it or")
    shutil.rmtree(bench.path("mixed"))


def check_names(bench):
    record = bench.record("train", config(bench, "start"))
    if not record:
        return
    shutil.copy(bench.path("start.safetensors"), bench.path("w.safetensors"))
    network, held = {"weights": "w.safetensors"}, {"folder": "held", "every": 10}
    bench.path("note.txt").write_text("mine\n")
    for link, to in (("l-config", "a.json"), ("l-image", "images/2.png"), ("l-held", "held/20.png"),
                     ("l-weights", "w.safetensors"), ("l-weights.safetensors", "w.safetensors")):
        bench.path(link).symlink_to(to)
    for log in ("a.json", "w.safetensors", "images/1.png", "held/20.png", "l-config", "l-image", "l-held", "l-weights",
                "./images/../a.json"):
        refused(bench, f"log {log}", config(bench, "a", network=network, validation=held, log=log), "log:", "is read by this run")
    for log, word in (("a.safetensors", "output"), ("a-checkpoints", "checkpoint.folder"), ("a-events", "tensorboard")):
        refused(bench, f"log {log}", config(bench, "a", log=log, tensorboard="a-events"), "is also the name of", word, log)
    refused(bench, "log of another kind", config(bench, "a", log="note.txt"), "note.txt", "not a log of training")
    for output in ("w.safetensors", "l-weights.safetensors"):
        refused(bench, f"output {output}", config(bench, "a", network=network, output=output), "output:", "is read by this run")
    for key in ("checkpoint", "tensorboard"):
        value = {"folder": "images/1.png"} if key == "checkpoint" else "images/1.png"
        refused(bench, key, config(bench, "a", **{key: value}), key, "expected a folder")
    path = config(bench, "a", network=network, validation=held, tensorboard="a-events")
    for name in ("a.json", "a.safetensors", "a.log", "a-checkpoints", "a-events", "w.safetensors", "images/1.png",
                 "images/1.png.aux.xml", "held/20.png", "l-config", "l-image", "l-held", "l-weights"):
        refused(bench, f"record {name}", path, "--json", options=("--json", bench.path(name)), status=2)
    bench.path("a-checkpoints").mkdir()
    for what, log, options, status in (("log", "a-checkpoints/step-000000010.ckpt", (), 1),
                                       ("record", "a.log", ("--json", bench.path("a-checkpoints/step-000000010.ckpt")), 2)):
        refused(bench, f"{what} as a checkpoint", config(bench, "a", log=log), options=options, status=status)
    bench.path("a-checkpoints").rmdir()
    record = bench.record("train", config(bench, "a", network=network, validation=held, tensorboard="a-checkpoints"))
    bench.check(record and len(bench.path("a.log").read_text().splitlines()) == 4, "other names are taken")


def check_targets(bench):
    os.mkfifo(bench.path("pipe.safetensors"))
    bench.path("folder.safetensors").mkdir()
    refused(bench, "pipe", config(bench, "b", output="pipe.safetensors"), "output:", "not a regular file")
    refused(bench, "folder", config(bench, "b", output="folder.safetensors"), "output:", "a folder")
    os.mkfifo(bench.path("pipe.log"))
    refused(bench, "pipe", config(bench, "b", log="pipe.log"), "log:", "not a regular file")
    for name in ("pipe.safetensors", "pipe.log"):
        bench.path(name).unlink()
    # A run that fails in its first step leaves the log of another one.
    shutil.copytree(bench.path("images"), bench.path("cut"))
    for path in bench.path("cut").iterdir():
        path.write_bytes(path.read_bytes()[:600])
    before = bench.path("start.log").read_bytes()
    path = config(bench, "b", data={"folders": ["cut"], "crop": 24}, log="start.log")
    bench.check_refused(bench.run("train", path, "--quiet"), 1, "cut/")
    bench.check(bench.path("start.log").read_bytes() == before, "the log of another run is kept")
    # Two runs with one log.
    first = bench.start("train", config(bench, "c", steps=100000, log="both.log"), "--quiet")
    while not (bench.path("both.log").exists() and bench.path("both.log").read_text()) and first.poll() is None:
        pass
    bench.check_refused(bench.run("train", config(bench, "d", log="both.log"), "--quiet"), 1, "both.log", "another run")
    first.kill()
    first.wait()
    bench.check(not bench.path("d-checkpoints").exists(), "the second run made no folder")


def weights(bench, name):
    return read_safetensors(bench.path(f"{name}.safetensors"))


def same(a, b):
    return all(np.array_equal(a[k], b[k]) for k in a)


def check_kept(bench):
    """--seed and --precision count as the keys do, also for --resume."""
    for name, options, changes in (("file", (), {"seed": 7}), ("given", ("--seed", 7), {}), ("both", ("--seed", 7), {"seed": 3}),
                                   ("zero", ("--seed", 0), {"seed": 7}), ("plain", (), {})):
        bench.record("train", config(bench, name, **changes), *options)
    made = {name: weights(bench, name) for name in ("file", "given", "both", "zero", "plain")}
    bench.check(same(made["file"], made["given"]) and same(made["file"], made["both"]), "--seed replaces the file's")
    bench.check(same(made["zero"], made["plain"]) and not same(made["plain"], made["file"]), "--seed 0 is a seed")
    told = json.loads(read_metadata(bench.path("given.safetensors"))["config"])
    bench.check(told["seed"] == 7 and told["precision"] == "fp32", f"the metadata have what was used: {told}")
    path = bench.path("given.json")
    refused(bench, "another seed", path, "seed: was 7", options=("--resume",))
    refused(bench, "another seed", path, "seed: was 7", options=("--resume", "--seed", 9))
    refused(bench, "another precision", path, "precision: was \"fp32\"",
            options=("--resume", "--seed", 7, "--precision", "bf16")) if bench.has_bf16() else None
    config(bench, "given", precision="fp32")
    bench.check(bench.record("train", path, "--resume", "--seed", 7), "the precision that auto chose may be named")
    text = bench.path("plain.json").read_bytes()
    bench.path("plain.json").write_bytes(b"\xef\xbb\xbf" + text)
    bench.check(bench.record("train", bench.path("plain.json"), "--resume"), "a byte-order mark is read over")


def check_images(bench):
    """A run that is resumed has the images that it had."""
    shutil.copytree(bench.path("images"), bench.path("own"))
    own = bench.path("own")
    data = {"folders": ["own"], "crop": 24, "workers": 1}
    if not bench.record("train", config(bench, "own", data=data)):
        return
    path, resume = bench.path("own.json"), ("--resume",)
    shutil.copy(own / "1.png", own / "0a.png")
    refused(bench, "added", path, "own/0a.png", "is new", "4 then, 5 now", options=resume)
    (own / "0a.png").unlink()
    (own / "1.png").rename(own / "x.png")
    refused(bench, "renamed", path, "own/2.png", "is gone", options=resume)
    (own / "x.png").rename(own / "1.png")
    whole = (own / "3.png").read_bytes()
    write_png(own / "3.png", to_integers(picture(48, 56, 3, 9), np.uint8))
    refused(bench, "replaced", path, "own/3.png", "was changed", options=resume)
    (own / "3.png").unlink()
    refused(bench, "removed", path, "own/2.png", "is gone", options=resume)
    (own / "3.png").write_bytes(whole)
    bench.check(bench.record("train", path, "--resume"), "with all images back it goes on")
    moved = bench.path("moved")
    moved.mkdir()
    for name in ("own", "own.json", "own-checkpoints"):
        shutil.move(bench.path(name), moved / name)
    bench.check(bench.record("train", moved / "own.json", "--resume"), "a run may be moved with its images")
    (moved / "own" / "loop").symlink_to("..")
    result = bench.run("plan", "train", moved / "own.json")
    bench.check(result.status == 0 and "link(s) to folders are not followed" in result.err and "4 images" in result.out,
                f"links to folders: {result}")


def check_rates(bench):
    """The rate of a line is that of its step."""
    bench.record("train", config(bench, "rates", schedule={"kind": "step", "every": 15, "factor": 0.5, "warmup": 20},
                                 optimizer={"rate": 1e-3}))
    rates = [json.loads(line)["rate"] for line in bench.path("rates.log").read_text().splitlines()]
    bench.check(np.allclose(rates, [0.5e-3, 0.5e-3]), f"rates of the steps 10 and 20: {rates}")


def check_plan(bench):
    drunet = {"architecture": "drunet", "channels": 3, "widths": [8, 16, 16, 32], "blocks": 1}
    work = {"network": drunet, "data": {"folders": ["images"], "crop": 40}, "batch": 16}

    def plan(memory, **more):
        result = bench.run("plan", "train", config(bench, "plan", **work, **more), "--memory", memory, "--json", "-", "--quiet")
        return json.loads(result.out)["plan"] if result.status == 0 else result

    least = plan("1M", validation={"folder": "held"})
    bench.check_refused(least, 1, "validation.folder" if "validation.folder" in least.err else "training needs", "--memory")
    small = plan("2M")
    enough = int(small.err.split("use --memory ")[1].split("M")[0]) << 20
    bench.check(isinstance(plan(enough), dict), f"the limit that the refusal names is enough: {enough}")
    bench.check(not isinstance(plan(enough - (1 << 20)), dict), "and a megabyte less is not")
    for limit in range(enough, 3 * enough, enough // 6):
        chosen, fits = plan(limit), []
        for parts in (1, 2, 4, 8, 16):
            for how in ("none", "blocks", "all"):
                other = plan(limit, micro_batches=parts, recompute=how)
                if isinstance(other, dict):
                    fits.append((other["seconds_per_step"], parts, how))
        if not isinstance(chosen, dict) or not fits:
            bench.check(False, f"{limit}: {chosen} {fits}")
            continue
        bench.check(chosen["peak_bytes"]["total"] <= limit and chosen["seconds_per_step"] <= min(fits)[0] * (1 + 1e-9),
                    f"{limit} bytes: {chosen['micro_batches']} parts, {chosen['recompute']}, "
                    f"{chosen['seconds_per_step']:.5f} s; the fastest is {min(fits)}")


def main():
    bench = Bench(sys.argv[1])
    make_images(bench)
    check_keys(bench)
    check_misfits(bench)
    check_names(bench)
    check_targets(bench)
    check_kept(bench)
    check_images(bench)
    check_rates(bench)
    check_plan(bench)
    bench.finish()


main()
