"""bundled.py PROGRAM: every bundled model has a card. Denoisers take pictures of odd sizes without --sigma, leave fine texture alone, and keep
what --halo and --memory promise; the one for elevation maps is the default of fill, and comes nearer to the truth than what a void's border says.

--halo auto promises less than 0.01 dB, with the halos of src/model/halo.c; exact promises the bits of the whole picture."""
import json
import os
import pathlib
import sys

import numpy as np

from support import Bench, picture, psnr, read_png, to_integers, write_png

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
BLIND = ("unet",)  # architectures that take no noise level
SIDES = (233, 271)
bench = Bench(sys.argv[1])
os.environ.pop("TESSERA_MODELS", None)


def photograph():
    """The one of the documentation, which only the program can read here; a part of odd sizes, in [0,1]."""
    bench.record("denoise", MODELS.parent / "docs/pictures/dog.png", bench.path("photo.npy"), "--strength", "0", "--model", "random:dncnn")
    return np.load(bench.path("photo.npy"))[20:20 + SIDES[0], :SIDES[1]] / 255


def scene(channels):
    """The photograph without noise, and with noise of 0.1."""
    clean = photo if channels == 3 else photo @ np.array([0.299, 0.587, 0.114])
    return clean, np.float32(clean + 0.1 * np.random.default_rng(7).standard_normal(clean.shape))


def denoise(name, source, *options):
    """The result, the record, and what was said."""
    target = bench.path("out" + source.suffix)
    target.unlink(missing_ok=True)
    done = bench.run("denoise", source, target, "--model", name, "--json", bench.path("record.json"), *options)
    if not bench.check(done.status == 0, f"{name} {' '.join(options)}: runs: {done.err.strip()[-300:]}"):
        bench.finish()
    result = np.load(target) if source.suffix == ".npy" else read_png(target)
    return result, json.loads(bench.path("record.json").read_text()), done.err


def check_card(name):
    card = MODELS / f"{name}.md"
    text = card.read_text() if card.exists() else ""
    bench.check(text.startswith(f"# {name}\n") and "licences" in text, f"{name} has a card, which names the licences")
    bench.check(f"({card.name})" in (MODELS / "README.md").read_text(), f"{name}: the list of models has its card")


def check_halos(name, source, clean):
    values = ("--range", "0,1", "--precision", "fp32")
    whole, record, _ = denoise(name, source, *values, "--tile", "whole")
    base, bytes_of = psnr(whole, clean), record["plan"]["peak_bytes"]
    exact, record, _ = denoise(name, source, *values, "--tile", "96", "--halo", "exact")
    bench.check(record["plan"]["tiles"] > 1 and np.array_equal(exact, whole), f"{name}: exact tiles equal the whole")
    for tile in ("64", "96"):
        tiled, record, _ = denoise(name, source, *values, "--tile", tile)
        moved = abs(psnr(tiled, clean) - base)
        bench.check(record["plan"]["tiles"] > 1 and moved < 0.01, f"{name}: tiles of {tile} change the PSNR by {moved:.5f} dB")
    limit = bytes_of["weights"] + (bytes_of["total"] - bytes_of["weights"]) * 4 // 5
    tiled, record, _ = denoise(name, source, *values, "--memory", str(limit))
    moved, most = abs(psnr(tiled, clean) - base), record["measured"]["peak_bytes"]["total"]
    bench.check(record["plan"]["tiles"] > 1 and most <= limit and moved < 0.01,
                f"{name}: {most} bytes of {limit} in {record['plan']['tiles']} tiles, which change the PSNR by {moved:.5f} dB")
    return whole


def check_model(model):
    name, channels = model["name"], model["channels"]
    blind = model["architecture"] in BLIND
    check_card(name)
    clean, noisy = scene(channels)
    np.save(bench.path("in.npy"), noisy)
    write_png(bench.path("in.png"), to_integers(np.clip(noisy, 0, 1), np.uint8))
    result, record, said = denoise(name, bench.path("in.png"))
    gain = psnr(result / 255, clean) - psnr(np.clip(noisy, 0, 1), clean)
    bench.check(result.shape == clean.shape and gain > 6, f"{name}: odd sizes gain {gain:.2f} dB")
    bench.check(("sigma" in record["denoise"]["files"][0]) != blind, f"{name}: the record has a level if the network takes one")
    whole = check_halos(name, bench.path("in.npy"), clean)
    other, _, said = denoise(name, bench.path("in.npy"), "--range", "0,1", "--precision", "fp32", "--sigma", "0.05")
    bench.check(np.array_equal(other, whole) == blind and ("takes no noise level" in said) == blind,
                f"{name}: --sigma has no effect, and a note, if it takes none: {said.strip()[-200:]}")


def texture(channels):
    """Fine texture of little contrast, like leaves. Weights that batch norm kept in check only while they were trained can turn it
    into false colours, many dB below the noisy picture; means over photographs hardly show that. In gray it is so much like noise
    that little can be gained."""
    sides = (160, 200)
    waves = np.hypot(*np.meshgrid(*(np.fft.fftfreq(side) for side in sides), indexing="ij"))
    waves[0, 0] = 1
    plane = np.fft.ifft2(np.fft.fft2(np.random.default_rng(1).standard_normal(sides)) / waves ** 0.6).real
    plane = 1 + 0.2 * (plane - plane.mean()) / plane.std()
    return plane * 0.3 if channels == 1 else np.stack([plane * mean for mean in (0.3, 0.32, 0.2)], -1)


def check_texture(name, channels):
    clean = texture(channels)
    for level in (10 / 255, 15 / 255, 25 / 255):
        noisy = np.float32(clean + level * np.random.default_rng(7).standard_normal(clean.shape))
        np.save(bench.path("texture.npy"), noisy)
        for precision in ["fp32", "bf16"] if has_bf16 else ["fp32"]:
            result, _, _ = denoise(name, bench.path("texture.npy"), "--range", "0,1", "--precision", precision)
            gain = psnr(result, clean) - psnr(noisy, clean)
            bench.check(gain > -1, f"{name} {precision}: fine texture with noise of {255 * level:.0f}/255 gains {gain:.2f} dB")


def check_channels(name, channels):
    """A gray network takes colours one by one; a network for colours refuses gray pictures."""
    write_png(bench.path("other.png"), to_integers(picture(37, 45, channels=4 - channels), np.uint8))
    if channels == 1:
        result, _, _ = denoise(name, bench.path("other.png"))
        bench.check(result.shape == (37, 45, 3), f"{name}: takes colours")
    else:
        done = bench.run("denoise", bench.path("other.png"), bench.path("never.png"), "--model", name, "--quiet")
        bench.check_refused(done, 1, "has 1 colour channels", f"{name}.safetensors takes 3")


def check_filler(name):
    """A void in hills, of which the mean of four samples must miss little."""
    y, x = np.mgrid[0:64, 0:64] / 64
    hills = 400 * sum(np.sin(a * x + b * y + c) / np.hypot(a, b) for a, b, c in ((5, 3, 0), (-7, 9, 1), (13, 4, 2), (6, -17, 3), (25, 11, 4), (-19, 23, 5)))
    void = np.hypot(x - 0.5, y - 0.45) < 0.17
    try:
        from osgeo import gdal
    except ImportError:
        gdal = None
    if not gdal or not bench.has_gdal():
        print(f"{name}: not run, since GDAL is missing")
        return
    source = gdal.GetDriverByName("GTiff").Create(str(bench.path("hills.tif")), 64, 64, 1, gdal.GDT_Float32)
    source.GetRasterBand(1).SetNoDataValue(-9999)
    source.GetRasterBand(1).WriteArray(np.where(void, -9999, hills))
    source = None
    record = bench.record("fill", bench.path("hills.tif"), bench.path("filled.tif"), "--samples", 4, "--tile", 64, "--steps", 10)
    if not bench.check(record and record["fill"]["model"] == name, f"fill takes {name} by itself"):
        return
    missed = gdal.Open(str(bench.path("filled.tif"))).ReadAsArray()[void] - hills[void]
    rms = lambda values: float(np.sqrt(np.mean(np.square(values))))
    bench.check(rms(missed) < 0.6 * hills[void].std(), f"{name}: misses {rms(missed):.1f} of {hills[void].std():.1f} m")


models = bench.record("info")["info"]["models"]
files = sorted(path.stem for path in MODELS.glob("*.safetensors"))
bench.check(sorted(model["name"] for model in models) == files, f"info lists them: {files}")
has_bf16 = bench.has_bf16()
photo = photograph()
for each in models:
    if each["architecture"] == "diffusion":
        check_card(each["name"])
        check_filler(each["name"])
        continue
    check_model(each)
    check_texture(each["name"], each["channels"])
    check_channels(each["name"], each["channels"])
bench.finish()
