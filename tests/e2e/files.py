"""files.py PROGRAM: everything besides pixels: folders, formats, options, messages, full disks, Ctrl-C."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from support import (Bench, dncnn, drunet, leftovers, picture, psnr, read_metadata, read_png, read_safetensors, to_integers, write_png,
                     write_pth, write_safetensors)


def gentle(channels):
    """A network that changes the image a little: its outputs are pictures, not black and white blots."""
    weights = dncnn(channels, depth=3, width=16)
    weights["out_conv.weight"] *= np.float32(0.05)
    return weights


class Case:
    """The bench with small models and images in it."""

    def __init__(self, bench):
        self.bench, self.check, self.path = bench, bench.check, bench.path
        self.color = write_safetensors(bench.path("color.safetensors"), gentle(3))
        self.gray = write_safetensors(bench.path("gray.safetensors"), gentle(1))
        self.drunet = write_safetensors(bench.path("drunet.safetensors"), drunet(3, widths=(8, 8, 8, 8)))
        self.image = bench.path("image.png")
        write_png(self.image, to_integers(picture(70, 91), np.uint8))

    def denoise(self, source, target, *more):
        return self.bench.record("denoise", source, target, "--sigma", "0.1", *more)


def check_folders(t):
    folder, out = t.path("in"), t.path("made/out")
    folder.mkdir()
    for name, seed in (("a.png", 1), ("b.png", 2), ("d.png", 3)):
        write_png(folder / name, to_integers(picture(48, 60, seed=seed), np.uint8))
    broken = (folder / "b.png").read_bytes()
    (folder / "c.png").write_bytes(broken[:len(broken) // 2])
    (folder / "e.png").write_bytes(b"no picture at all")
    (folder / "notes.txt").write_text("not an image")
    out.parent.mkdir()
    result = t.bench.run("denoise", folder, out, "--model", t.color, "--quiet", "--json", t.path("record.json"))
    said = result.err.splitlines()
    t.check(result.status == 1 and len(said) == 3 and "c.png" in said[0] and "e.png" in said[1] and "2 of 5" in said[2],
            f"each bad file has a line at the end: {result}")
    made = sorted(p.name for p in out.iterdir())
    t.check(made == ["a.png", "b.png", "d.png"], f"the folder is made and the good files are done: {made}")
    record = json.loads(t.path("record.json").read_text())
    errors = {f["name"]: f.get("error") for f in record["denoise"]["files"]}
    t.check(sorted(n for n, e in errors.items() if e) == ["c.png", "e.png"] and "c.png" in errors["c.png"],
            f"the record lists each error under its file: {errors}")
    t.check(record["input"]["files"] == 5 and record["input"]["height"] == 48, "the record counts 5 files, 48 rows")
    one = t.path("one.png")
    t.denoise(folder / "a.png", one, "--model", t.color)
    t.check(one.read_bytes() == (out / "a.png").read_bytes(), "a file gives the same alone as in a folder")
    t.denoise(folder / "d.png", out, "--model", t.color)
    t.denoise(t.image, out, "--model", t.color)
    t.check((out / "image.png").exists(), "a single file goes into an existing folder under its own name")
    said = t.bench.run("plan", "denoise", folder, out, "--model", t.color, "--verbose").err
    t.check("1 file(s) in it do not have the suffix" in said, f"files that are no images are counted: {said.strip()[-200:]}")
    if t.bench.has_gdal():
        jpeg = t.path("jpeg")
        jpeg.mkdir()
        t.denoise(folder / "a.png", t.path("a.jpg"), "--model", t.color)
        t.path("a.jpg").rename(jpeg / "a.jfif")
        t.denoise(jpeg, t.path("jpeg-out"), "--model", t.color)
        t.check(t.path("jpeg-out/a.jfif").read_bytes()[:3] == b"\xff\xd8\xff", "a folder's .jfif files are JPEGs")
    empty = t.path("empty")
    empty.mkdir()
    t.bench.check_refused(t.bench.run("denoise", empty, out, "--model", t.color), 1, "no image file")
    t.bench.check_refused(t.bench.run("denoise", folder, t.image, "--model", t.color), 2, "image.png", "folder")
    result = t.bench.run("denoise", folder, t.path("pixels"), "--model", t.color, "--truth", folder, "--json", "-", "--quiet")
    t.check(result.status == 1 and "psnr_db" in result.record["quality"], "a truth folder gives PSNR for the good files")
    mixed, mixed_out = t.path("other"), t.path("other-out")
    mixed.mkdir()
    write_png(mixed / "a.png", to_integers(picture(32, 32), np.uint8))
    np.save(t.path("float.npy"), picture(32, 32))
    np.save(t.path("five.npy"), np.zeros((32, 32, 5), np.float32))
    shutil.copy(t.path("float.npy"), mixed / "float.png")  # its content is NPY floats: written as a PNG of 16 bits
    shutil.copy(t.path("five.npy"), mixed / "five.png")  # a volume, which PNG cannot hold
    result = t.bench.run("denoise", mixed, mixed_out, "--model", t.color, "--quiet")
    t.check(result.status == 1 and (mixed_out / "a.png").exists(),
            f"a file whose output cannot be written as named fails alone, status 1: {result}")
    t.check((mixed_out / "float.png").exists(), "floats become the integers that the format holds")


def check_formats(t):
    def through(image, model, suffix=".png"):
        write_png(t.path("x.png"), image)
        target = t.path("y" + suffix)
        target.unlink(missing_ok=True)
        record = t.denoise(t.path("x.png"), target, "--model", model)
        result = read_png(target) if suffix == ".png" else np.load(target)
        return record, result

    color, gray = picture(40, 53), picture(40, 53, 1, seed=5)
    alpha = picture(40, 53, 1, seed=9)
    for dtype in (np.uint8, np.uint16):
        bits, most = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype).max
        plain = through(to_integers(color, dtype), t.color)[1]
        with_alpha = to_integers(np.dstack([color, alpha]), dtype)
        result = through(with_alpha, t.color)[1]
        t.check(np.array_equal(result[..., 3], with_alpha[..., 3]), f"RGBA {bits}: alpha is carried unchanged")
        t.check(np.array_equal(result[..., :3], plain), f"RGBA {bits}: the colours are those without alpha")
        gray_plain = through(to_integers(gray, dtype), t.gray)[1]
        result = through(to_integers(np.dstack([gray, alpha]), dtype), t.gray)[1]
        t.check(np.array_equal(result[..., 1], to_integers(alpha, dtype)) and np.array_equal(result[..., 0], gray_plain),
                f"gray with alpha {bits}: alpha is carried, gray is as without")
        result = through(to_integers(color, dtype), t.gray)[1]
        planes = [through(to_integers(color[..., c], dtype), t.gray)[1] for c in range(3)]
        t.check(np.array_equal(result, np.dstack(planes)), f"a gray model on RGB {bits} does each channel")
        result = through(with_alpha, t.gray)[1]
        t.check(np.array_equal(result[..., :3], np.dstack(planes)) and np.array_equal(result[..., 3], with_alpha[..., 3]),
                f"a gray model on RGBA {bits} does each colour and carries alpha")
        values = through(to_integers(color, dtype), t.color, ".npy")[1]
        t.check(values.dtype == dtype and np.array_equal(values, plain), f"PNG {bits} to NPY keeps type and values")
        np.save(t.path("x.npy"), (to_integers(color, dtype).astype(np.float64) / most).astype(np.float32))
        t.denoise(t.path("x.npy"), t.path("y.npy"), "--model", t.color)
        off = np.abs(np.clip(np.load(t.path("y.npy")), 0, 1).astype(np.float64) * most - plain).max()
        t.check(off <= 0.51 + most * 1e-6, f"{bits} bit samples are the float result rounded (off by {off:.3f})")
    record = t.denoise(t.image, t.path("same.png"), "--model", t.color, "--truth", t.image)
    truth, result = read_png(t.image) / 255.0, read_png(t.path("same.png")) / 255.0
    t.check(abs(record["quality"]["psnr_db"] - psnr(result, truth)) < 0.05,
            f"PSNR is that of the file, before rounding: {record['quality']['psnr_db']:.3f}, {psnr(result, truth):.3f} dB")
    noisy = [t.denoise(t.image, t.path(f"n{i}.npy"), "--model", t.color, "--add-noise", "0.1", "--seed", seed)
             for i, seed in enumerate((1, 1, 2))]
    files = [t.path(f"n{i}.npy").read_bytes() for i in range(3)]
    t.check(all(noisy) and files[0] == files[1] != files[2], "--add-noise depends on --seed, and on nothing else")


def check_records(t):
    result = t.bench.run("denoise", t.image, t.path("r.png"), "--model", t.color, "--json", t.path("r.json"))
    record = json.loads(t.path("r.json").read_text())
    t.check(result.status == 0 and "planned" in result.out and "measured" in result.out, "without --quiet a summary is shown")
    t.check({"command", "version", "device", "device_name", "precision", "threads", "ranks", "input", "plan",
             "measured"} <= set(record) and record["command"] == "denoise", "--json FILE has the shared keys")
    result = t.bench.run("denoise", t.image, t.path("r.png"), "--model", t.color, "--json", "-")
    t.check(result.record["input"] == record["input"], "--json - is the record and nothing else")
    result = t.bench.run("denoise", t.image, t.path("r.png"), "--model", t.color, "--quiet")
    t.check(result.status == 0 and not result.out and not result.err, "--quiet says nothing")
    before = sorted(p for p in t.bench.folder.rglob("*"))
    args = (t.image, t.path("planned.png"), "--model", t.drunet, "--sigma", "0.1", "--tile", "32", "--halo", "16")
    plan = t.bench.record("plan", "denoise", *args)
    t.check(sorted(p for p in t.bench.folder.rglob("*")) == before, "plan writes nothing")
    plan_folder = t.bench.run("plan", "denoise", t.path("in"), t.path("never"), "--model", t.color, "--quiet")
    t.check(not t.path("never").exists(), f"plan makes no folder: {plan_folder}")
    record = t.bench.record("denoise", *args)
    same = {k: v for k, v in record["plan"].items()} == plan["plan"]
    t.check(same and record["input"] == plan["input"], f"plan tells the plan of the run: {plan['plan']}")
    t.check(plan["command"] == "plan" and plan["verb"] == "denoise" and "measured" not in plan, "plan measures nothing")
    result = t.bench.run("denoise", t.image, t.path("r.png"), "--model", t.color, "--json", t.path("no/such/record.json"))
    t.bench.check_refused(result, 1, "record.json")
    with open("/dev/full", "w") as full:
        result = t.bench.run("denoise", t.image, t.path("r.png"), "--model", t.color, "--json", "-", "--quiet", stdout=full)
    t.bench.check_refused(result, 1, "--json")
    info = t.bench.record("info")["info"]
    t.check({"devices", "models", "libraries", "calibration"} <= set(info) and info["devices"][0]["threads"] >= 1,
            f"info names devices, libraries and {len(info['models'])} bundled model(s)")


def check_record_file(t):
    """A record is written over nothing that the job reads or makes, and a place that takes none shows before the work."""
    folder, out, truth, link = t.path("of-job"), t.path("of-job-out"), t.path("of-job-truth"), t.path("of-job-link")
    for place in (folder, truth):
        place.mkdir()
        write_png(place / "a.png", to_integers(picture(20, 20), np.uint8))
    link.symlink_to(folder)
    write_pth(t.path("own.pth"), gentle(3))
    before = {p: p.read_bytes() for p in t.bench.folder.rglob("*") if p.is_file()}
    files = (folder, out, "--model", t.color)
    one = (folder / "a.png", t.path("of-job.png"), "--model", t.color)
    for words in ((*files, "--json", folder / "a.png"), (*files, "--json", link / "a.png"), (*files, "--json", out / "a.png"),
                  (*files, "--truth", truth, "--json", truth / "a.png"), (*one, "--json", one[1]), (*one, "--json", link / "a.png"),
                  (*one, "--truth", truth / "a.png", "--json", truth / "a.png"), (*one, "--json", t.color),
                  (one[0], truth, *one[2:], "--json", truth / "a.png")):
        for verb in (("denoise",), ("plan", "denoise")):
            t.bench.check_refused(t.bench.run(*verb, *words), 2, "--json", "another name")
    for words in (("convert", t.path("own.pth"), t.path("own.safetensors"), "--json", t.path("own.pth")),
                  ("convert", t.path("own.pth"), t.path("own.safetensors"), "--json", t.path("own.safetensors")),
                  ("bench", "size", "--models", t.color, "--widths", 32, "--json", t.color)):
        t.bench.check_refused(t.bench.run(*words), 2, "--json", "another name")
    for words in (("denoise", *one), ("plan", "denoise", *one), ("info",), ("convert", t.path("own.pth"), t.path("own.safetensors"))):
        t.bench.check_refused(t.bench.run(*words, "--json", t.path("no/such.json")), 1, "--json", "such.json")
        t.bench.check_refused(t.bench.run(*words, "--json", truth), 1, "--json", truth.name)
    after = {p: p.read_bytes() for p in t.bench.folder.rglob("*") if p.is_file()}
    t.check(after == before, f"nothing of all that is touched: {set(after) ^ set(before)}")
    result = t.bench.run("denoise", *files, "--json", out / "record.json", "--quiet")
    t.check(result.status == 0 and json.loads((out / "record.json").read_text()), f"a record in the folder that the job makes: {result}")


def check_usage(t):
    for words in (("--help",), ("denoise", "--help"), ("plan", "--help"), ("plan", "denoise", "--help"), ("convert", "--help"),
                  ("info", "--help")):
        result = t.bench.run(*words)
        t.check(result.status == 0 and "xample" in result.out and not result.err, f"{' '.join(words)}: help with an example")
    result = t.bench.run("--version")
    t.check(result.status == 0 and result.out.strip().count(".") == 2, f"--version: {result.out.strip()}")
    result = t.bench.run()
    t.check(result.status == 2 and "denoise" in result.err, "no verb: status 2 and the verbs")
    out = t.path("unused.png")
    base = ("denoise", t.image, out, "--model", t.color)
    for words, names in (
            (("melt",), ("melt",)), ((*base, "--colour", "red"), ("--colour",)), ((*base, "--sigma"), ("--sigma",)),
            ((*base, "--sigma="), ("--sigma",)), ((*base, "--sigma", "loud"), ("--sigma", "loud")),
            ((*base, "--sigma", "25"), ("--sigma", "25")), ((*base, "--sigma", "-0.1"), ("--sigma",)),
            ((*base, "--sigma", "1/0"), ("--sigma",)), ((*base, "--sigma", "nan"), ("--sigma",)),
            ((*base, "--tile", "0"), ("--tile",)), ((*base, "--tile", "12x"), ("--tile",)),
            ((*base, "--tile", "64x64x3"), ("--tile",)), ((*base, "--tile", "many"), ("--tile",)),
            ((*base, "--halo", "-1"), ("--halo",)), ((*base, "--batch", "0"), ("--batch",)),
            ((*base, "--threads", "0"), ("--threads",)), ((*base, "--memory", "lots"), ("--memory",)),
            ((*base, "--memory", "-5M"), ("--memory",)), ((*base, "--precision", "fp8"), ("--precision", "fp8")),
            ((*base, "--device", "abacus"), ("--device", "abacus")), ((*base, "--add-noise", "-1"), ("--add-noise",)),
            (("denoise", t.image), ("missing",)), (("denoise", t.image, t.image, t.color), ("folder",)),
            ((*base, "--memory", "1K"), ("--memory", "1 MiB")), (("convert", t.color), ("missing",)),
            (("convert", t.color, t.path("w.bin")), (".safetensors",)), (("plan",), ("denoise",)),
            (("plan", "info"), ("denoise",)), (("info", "extra"), ("extra",)),
            ((*base, "--strength", "1.5"), ("--strength",)), ((*base, "--range", "1,0"), ("--range",)),
            ((*base, "--axes", "WH"), ("--axes",))):
        t.bench.check_refused(t.bench.run(*words), 2, *names)
    for words, names in (
            (("denoise", t.image, out, "--sigma", "0.1", "--memory", "1M"), ("--memory", "too little")),
            (("denoise", t.image, out, "--model", t.path("none.safetensors")), ("none.safetensors",)),
            (("denoise", t.image, out, "--model", "unheard-of"), ("unheard-of", "tessera info")),
            (("denoise", t.path("none.png"), out, "--model", t.color), ("none.png",)),
            ((*base, "--truth", t.path("none.png")), ("none.png",)),
            (("denoise", t.image, t.path("no/folder/out.png"), "--model", t.color), ("out.png", "folder")),
            (("convert", t.image, t.path("w.safetensors")), ("image.png",))):
        t.bench.check_refused(t.bench.run(*words), 1, *names)
    write_png(t.path("gray.png"), to_integers(picture(30, 40, 1), np.uint8))
    t.bench.check_refused(t.bench.run("denoise", t.path("gray.png"), out, "--model", t.color), 1, "gray.png", "channels", "3")
    np.save(t.path("five.npy"), np.zeros((20, 20, 5), np.float32))
    t.bench.check_refused(t.bench.run("denoise", t.path("five.npy"), t.path("five-out.npy"), "--model", t.color), 1, "five.npy")
    t.bench.check_refused(t.bench.run(*base, "--truth", t.path("gray.png")), 1, "gray.png")
    result = t.bench.run("denoise", t.image, t.path("out.xyz"), "--model", t.color)
    t.check(result.status in (1, 2) and len(result.lines) == 1 and "out.xyz" in result.err, f"an unknown suffix is refused: {result}")
    t.check(not out.exists() and not leftovers(t.bench.folder), "nothing was written by any of these")
    spelled = []
    for i, sigma in enumerate(("25/255", "0.0980392156862745")):
        t.bench.record("denoise", t.image, t.path(f"s{i}.npy"), "--model", t.drunet, "--sigma", sigma)
        spelled.append(t.path(f"s{i}.npy").read_bytes())
    t.bench.record("denoise", t.image, t.path("s2.npy"), f"--model={t.drunet}", "--sigma=0.2")
    t.check(spelled[0] == spelled[1] != t.path("s2.npy").read_bytes(), "--sigma 25/255 is 0.0980392156862745, and it matters")


def check_convert(t):
    weights = gentle(3)
    for name, legacy in (("zip.pth", False), ("legacy.pth", True)):
        write_pth(t.path(name), weights, legacy)
        target = t.path(name + ".safetensors")
        record = t.bench.record("convert", t.path(name), target)
        if not record:
            continue
        read = read_safetensors(target)
        t.check(list(read) and all(np.array_equal(read[n], weights[n]) for n in weights) and len(read) == len(weights),
                f"{name}: every tensor arrives")
        t.check(record["convert"]["architecture"] == "dncnn" and record["convert"]["tensors"] == len(weights),
                f"{name}: recognised as dncnn")
        files = []
        for model in (t.color, t.path(name), target):
            t.denoise(t.image, t.path("c.npy"), "--model", model)
            files.append(t.path("c.npy").read_bytes())
        t.check(files[0] == files[1] == files[2], f"{name}: denoises the same before and after")
    t.check(read_metadata(target) == {"format": "pt"}, "the metadata that PyTorch's loaders require")
    told = {"architecture": "DRUNet", "widths": "32,64", "sigma_max": "0.7", "author": "\u00e9"}
    write_safetensors(t.path("told.safetensors"), drunet(), told)
    t.bench.record("convert", t.path("told.safetensors"), t.path("kept.safetensors"))
    t.check(read_metadata(t.path("kept.safetensors")) == {**told, "format": "pt"}, f"metadata are kept: {read_metadata(t.path('kept.safetensors'))}")
    for sigma, noted in (("0.5", False), ("0.8", True)):
        result = t.bench.run("plan", "denoise", t.image, t.path("c.npy"), "--model", t.path("kept.safetensors"), "--sigma", sigma)
        t.check(result.status == 0 and ("trained for levels up to 0.7" in result.err) == noted, f"sigma_max is read, sigma {sigma}: {result.err.strip()}")
    before = t.path("told.safetensors").read_bytes()
    os.symlink("told.safetensors", t.path("other.safetensors"))
    for name in ("told.safetensors", "other.safetensors"):
        t.bench.check_refused(t.bench.run("convert", t.path("told.safetensors"), t.path(name)), 2, name, "over the input")
    t.check(t.path("told.safetensors").read_bytes() == before, "and the input is left as it was")
    published = pathlib.Path(os.environ.get("TESSERA_DATA") or "none") / "weights" / "saoyan_dncnn_s25.pth"
    if published.exists():
        t.bench.record("convert", published, t.path("published.safetensors"))
        files = []
        for model in (published, t.path("published.safetensors")):
            t.denoise(t.path("gray.png"), t.path("c.npy"), "--model", model)
            files.append(t.path("c.npy").read_bytes())
        t.check(files[0] == files[1], "published weights with batch norm denoise the same before and after")
    else:
        print("TESSERA_DATA has no published weights: they are left out")


def check_full_disk(t):
    """A file-size limit refuses writes as a full disk does, on every machine; a real full file system where one can be
    mounted."""
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    big = t.path("big.png")
    write_png(big, to_integers(picture(256, 256), np.uint8))
    where = t.path("limited")
    where.mkdir()
    weights = write_safetensors(t.path("large.safetensors"), dncnn())
    for words in (("denoise", big, where / "out.png", "--model", t.color), ("denoise", big, where / "out.npy", "--model", t.color),
                  ("convert", weights, where / "w.safetensors")):
        result = t.bench.run(*words, "--quiet", preexec_fn=small_files)
        t.bench.check_refused(result, 1, pathlib.Path(words[2]).name)
        t.check(not list(where.iterdir()), f"and leaves nothing: {[p.name for p in where.iterdir()]}")
    disk = t.path("disk")
    disk.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
                                                   capture_output=True).returncode == 0
    if not mounted:
        print("no small file system can be mounted here: only the file-size limit was tried")
        return
    try:
        for words in (("denoise", big, disk / "out.png", "--model", t.color), ("denoise", big, disk / "out.npy", "--model", t.color),
                      ("convert", weights, disk / "w.safetensors")):
            result = t.bench.run(*words, "--quiet")
            t.bench.check_refused(result, 1, pathlib.Path(words[2]).name, "No space left")
            t.check(not list(disk.iterdir()), f"and leaves nothing on the full disk: {[p.name for p in disk.iterdir()]}")
        kept = disk / "kept.png"
        write_png(kept, to_integers(picture(16, 16), np.uint8))
        before = kept.read_bytes()
        t.bench.check_refused(t.bench.run("denoise", big, kept, "--model", t.color, "--quiet"), 1, "No space left")
        t.check(kept.read_bytes() == before, "an older output stays when the new one does not fit")
    finally:
        subprocess.run(["umount", disk], capture_output=True)


def check_unwritable(t):
    if os.geteuid() == 0:
        print("run as root: folders without write permission are left out")
        return
    folder = t.path("locked")
    folder.mkdir()
    folder.chmod(0o500)
    t.bench.check_refused(t.bench.run("denoise", t.image, folder / "out.png", "--model", t.color), 1, "out.png")
    folder.chmod(0o700)


def check_interrupt(t):
    model = write_safetensors(t.path("deep.safetensors"), dncnn(3, depth=17, width=64))
    source, folder = t.path("long.png"), t.path("stopped")
    write_png(source, to_integers(picture(1200, 1200), np.uint8))
    folder.mkdir()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with open(t.path("stderr.txt"), "w+") as err:
            process = t.bench.start("denoise", source, folder / "out.png", "--model", model, "--tile", "128", "--halo", "32",
                                    "--quiet", stdout=err, stderr=err, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
            while not leftovers(folder) and process.poll() is None:
                time.sleep(0.005)
            seen = leftovers(folder)
            time.sleep(0.2)
            process.send_signal(number)
            begin = time.monotonic()
            status = process.wait()
            took = time.monotonic() - begin
            err.seek(0)
            lines = err.read().splitlines()
        t.check(bool(seen) and status == 128 + number and len(lines) == 1 and "stopped" in lines[0],
                f"{number.name}: status {status} after {took:.2f} s, began {seen}, {lines}")
        t.check(not list(folder.iterdir()), f"{number.name}: nothing is left: {[p.name for p in folder.iterdir()]}")


def main():
    t = Case(Bench(sys.argv[1]))
    for part in (check_folders, check_formats, check_records, check_record_file, check_usage, check_convert, check_full_disk, check_unwritable,
                 check_interrupt):
        print(f"{part.__name__}:")
        part(t)
    t.check(not leftovers(t.bench.folder), "no temporary file is left anywhere")
    t.bench.finish()


main()
