"""train_dem.py PROGRAM [DEVICE]: training of a small diffusion network on elevation maps, and `fill` with the result.

The validation loss falls; a run that was killed, or has other workers or another cache, gives the same bits; memory is as planned;
`fill` takes the file, with the calibration that it holds; every mistake is one line.
"""
import json
import shutil
import sys
import time

import numpy as np

from support import Bench, read_metadata, read_safetensors, skip, write_config, write_safetensors
from tiff import read_tiff, write_tiff

NODATA = -9999.0
NETWORK = {"architecture": "diffusion", "widths": [8, 16], "blocks": 1}
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
FILL = ("--device", DEVICE, "--steps", 4, "--tile", 64, "--overlap", 8)


def terrain(h, w, seed):
    """Hills and ridges of all sizes: white noise with a spectrum that falls with the frequency."""
    spectrum = np.fft.rfft2(np.random.default_rng(seed).standard_normal((h, w)))
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(h), np.fft.rfftfreq(w), indexing="ij"))
    z = np.fft.irfft2(spectrum * np.where(f > 0, np.maximum(f, 0.02) ** -2.0, 0), (h, w))
    return (500 + 100 * z / z.std()).astype(np.float32)


def save(path, data):
    write_tiff(path, data, nodata=f"{NODATA:g}")


def load(bench, name):
    return read_tiff(bench.path(name))


def make_maps(bench):
    for name, seeds in (("maps", range(5)), ("held", range(20, 22))):
        bench.path(name).mkdir()
        for seed in seeds:
            data = terrain(100 + 10 * seed % 30, 90, seed)
            if seed == 1:
                data[:40, :50] = NODATA
            save(bench.path(name) / f"{seed}.tif", data)


def config(bench, name, **changes):
    """Writes a configuration with changes, as write_config. Returns its path."""
    keys = {"network": NETWORK, "data": {"folders": ["maps"], "crop": 32, "workers": 2}, "batch": 4, "steps": 24,
            "optimizer": {"rate": 3e-3}, "average": 0.9, "output": f"{name}.safetensors", "checkpoint": {"every": 5},
            "device": DEVICE, "log": f"{name}.log"}
    return write_config(bench.path(f"{name}.json"), keys, changes)


def train(bench, name, *options, **changes):
    return bench.record("train", config(bench, name, **changes), *options)


def weights(bench, name):
    return read_safetensors(bench.path(f"{name}.safetensors"))


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k].view(np.uint32), b[k].view(np.uint32)) for k in a)


def check_result(bench):
    checked = {"steps": 120, "validation__folder": "held", "validation__every": 20}
    record = train(bench, "net", **checked)
    if not record:
        return
    planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
    # Files are read now and then, so that their readers may be in no peak.
    bench.check(measured <= planned <= 1.01 * measured + (768 << 10), f"planned {planned} bytes, measured {measured}")
    told, result = read_metadata(bench.path("net.safetensors")), record["train"]["result"]
    bench.check(told["conditioning"] == "smooth" and "sigma_max" not in told and "deviation_factor" not in told,
                f"metadata of the weights: {sorted(told)}")
    lines = [json.loads(line) for line in bench.path("net.log").read_text().splitlines()]
    losses = [line["validation_loss"] for line in lines if "validation_loss" in line]
    bench.check(len(losses) == 6 and losses[-1] < 0.8 * losses[0] and len(result["validation_loss_of_levels"]) == 3 and
                result["best_validation_loss"] <= result["validation_loss"] == losses[-1], f"validation improves: {losses}")
    plan = bench.record("plan", "train", bench.path("net.json"))
    bench.check(plan and plan["plan"]["peak_bytes"] == record["plan"]["peak_bytes"] and plan["train"]["images"] == 5,
                "plan train predicts the same bytes")
    train(bench, "net", "--resume", deviation_factor=2.0, **checked)
    bench.check(float(read_metadata(bench.path("net.safetensors"))["deviation_factor"]) == 2,
                "a finished run is written again with a calibration")
    train(bench, "plain", "--resume", checkpoint__folder="net-checkpoints", **checked)
    record = train(bench, "tuned", network={"weights": "plain.safetensors", "dropout": 0.2}, steps=2)
    bench.check(record and record["train"]["architecture"] == "diffusion" and
                read_metadata(bench.path("tuned.safetensors"))["conditioning"] == "smooth", "training goes on from a file")


def check_equal(bench):
    if not train(bench, "one", data__workers=1, network__dropout=0.2):
        return
    for name, changes in (("workers", {"data__workers": 3}), ("cache", {"data__cache": 0}), ("all", {"recompute": "all"})):
        if train(bench, name, **{"data__workers": 1, "network__dropout": 0.2, **changes}):
            bench.check(same(weights(bench, "one"), weights(bench, name)), f"the same bits: {name}")
    path, folder = config(bench, "killed", data__workers=1, network__dropout=0.2), bench.path("killed-checkpoints")
    for _ in range(2):
        resume = ("--resume",) if list(folder.glob("*.ckpt")) else ()
        before = len(resume) and max(p.name for p in folder.glob("*.ckpt"))
        process = bench.start("train", path, "--quiet", *resume)
        while process.poll() is None and max([p.name for p in folder.glob("*.ckpt")] or [""]) == (before or ""):
            time.sleep(0.005)
        process.kill()
        process.wait()
    if bench.record("train", path, "--resume"):
        bench.check(same(weights(bench, "one"), weights(bench, "killed")), "killed twice and resumed: the same bits")


def check_fill(bench):
    z = terrain(220, 240, 50)
    data = z.copy()
    data[20:40, 30:60] = data[100:103, 20:200] = NODATA
    save(bench.path("map.tif"), data)
    save(bench.path("truth.tif"), z)

    def fill(to, *options, model="net", source="map.tif"):
        return bench.record("fill", bench.path(source), bench.path(to), "--model", bench.path(f"{model}.safetensors"), *FILL,
                            *options)

    record = fill("out.tif", "--samples", 2, "--deviation", bench.path("dev.tif"), "--truth", bench.path("truth.tif"))
    if not record:
        return
    out, void = load(bench, "out.tif"), data == NODATA
    planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
    bench.check(np.array_equal(out[~void], data[~void]) and np.all(out != NODATA), "all voids are filled, nothing else")
    bench.check(measured <= planned <= 1.01 * measured + (1 << 20), f"planned {planned} bytes, measured {measured}")
    middle = np.abs(z[void] - z[void].mean()).mean()
    bench.check(record["quality"]["mae"] < middle, f"MAE {record['quality']['mae']:.2f}, of the mean {middle:.2f}")
    fill("plain.tif", "--samples", 2, "--deviation", bench.path("dev1.tif"), "--batch", 1, model="plain")
    dev, dev1 = load(bench, "dev.tif")[void], load(bench, "dev1.tif")[void]
    bench.check(np.array_equal(out, load(bench, "plain.tif")) and np.allclose(dev, 2 * dev1, rtol=1e-5) and
                dev1.mean() > 0, "the file's factor calibrates the deviation; batches do not matter")
    data[40:210, 60:230] = NODATA
    save(bench.path("wide.tif"), data)
    record = fill("wide_out.tif", source="wide.tif")
    bench.check(record and record["fill"]["guided_tiles"] > 0 and np.all(load(bench, "wide_out.tif") != NODATA),
                "a wide void is filled coarse to fine")
    refused = bench.run("fill", bench.path("map.tif"), bench.path("no.tif"), "--model", bench.path("net.safetensors"), *FILL,
                        "--scaling", "global")
    bench.check_refused(refused, 2, "--scaling", "tile")


def check_devices(bench):
    """In fp32, a card computes what the CPU does."""
    losses = [record["train"]["result"]["loss"] for record in
              (train(bench, f"on_{d}", precision="fp32", steps=4, device=d, network__dropout=0) for d in ("cpu", DEVICE)) if record]
    bench.check(len(losses) == 2 and abs(losses[0] - losses[1]) < 1e-3 * losses[0], f"loss after 4 steps: {losses}")


def check_refused(bench):
    bench.path("small").mkdir()
    save(bench.path("small") / "s.tif", terrain(20, 40, 3))
    bench.path("flat").mkdir()
    save(bench.path("flat") / "f.tif", np.zeros((60, 60), np.float32))
    for words, changes in ((("data.sigma", "diffusion"), {"data__sigma": 0.1}),
                           (("network.channels", "diffusion"), {"network__channels": 1}),
                           (("loss.kind", "diffusion"), {"loss": {"kind": "l1"}}),
                           (("network.attention", "8"), {"network__attention": [8]}),
                           (("data.scales", "0.7"), {"data__scales": [0.7]}),
                           (("data.crop", "multiple of 2"), {"data__crop": 33}),
                           (("s.tif", "40 x 20", "exclude"), {"data__folders": ["small"]}),
                           (("f.tif", "level"), {"data__folders": ["flat"]}),
                           (("validation.folder", "s.tif"), {"validation__folder": "small"}),
                           (("network.dropout", "drunet"), {"network": {"architecture": "drunet", "dropout": 0.1}}),
                           (("loss.kind",), {"network": {"architecture": "drunet"}, "loss": {"kind": "masked_mse"}})):
        result = bench.run("train", config(bench, "bad", **changes), "--quiet")
        bench.check_refused(result, 2 if "0.7" in words else 1, *words)
        shutil.rmtree(bench.path("bad-checkpoints"), ignore_errors=True)
    plain = weights(bench, "plain")
    first = next(k for k in plain if k.endswith("input_blocks.0.0.weight"))
    write_safetensors(bench.path("two.safetensors"), {**plain, first: plain[first][:, :2].copy()})
    bench.check_refused(bench.run("train", config(bench, "bad", network={"weights": "two.safetensors"})), 1, "2 channels")
    write_safetensors(bench.path("four.safetensors"), plain)  # without metadata
    bench.check_refused(bench.run("fill", bench.path("map.tif"), bench.path("no.tif"), "--model",
                                  bench.path("four.safetensors"), *FILL), 1, "four.safetensors", "4 channels", "2")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("the program has no GDAL")
    if DEVICE != "cpu":
        bench.need_device(DEVICE)
    make_maps(bench)
    check_result(bench)
    check_equal(bench)
    check_fill(bench)
    if DEVICE != "cpu":
        check_devices(bench)
    check_refused(bench)
    return bench.finish()


sys.exit(main())
