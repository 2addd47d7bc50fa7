"""samples.py PROGRAM: how the samples of a file are interpreted: holes, ranges, axes, noise levels, blends, types."""
import struct
import sys

import numpy as np

from support import Bench, dncnn, picture, psnr, read_png, to_integers, write_png, write_safetensors
from tiff import tags_of, write_tiff

SIGMA = 0.1


def noisy(height=72, width=104, channels=1, seed=0):
    """A smooth picture and the same with noise; (H,W) for one channel."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [0.5 + 0.25 * np.sin(x / 9 + c + seed) * np.cos(y / 13 - c) for c in range(channels)]
    clean = (planes[0] if channels == 1 else np.stack(planes, -1)).astype(np.float32)
    return clean, (clean + SIGMA * np.random.default_rng(seed).standard_normal(clean.shape)).astype(np.float32)


class Case:
    def __init__(self, bench):
        self.bench, self.check, self.path = bench, bench.check, bench.path
        self.clean, self.image = noisy()
        self.whole = self.run(self.image)[0]

    def run(self, array, *options, name="in.npy", out="out.npy", sigma=SIGMA, model=None):
        """The result of denoising an array, and the record's entry for it."""
        np.save(self.path(name), array)
        words = [] if sigma is None else ["--sigma", sigma]
        record = self.bench.record("denoise", self.path(name), self.path(out), *words, *(["--model", model] if model else []), *options)
        if not record:
            return None, {}
        return (np.load(self.path(out)) if out.endswith(".npy") else None), record["denoise"]["files"][0]


def check_holes(t):
    image, rng = t.image.copy(), np.random.default_rng(5)
    image.ravel()[rng.choice(image.size, 120, replace=False)] = np.nan
    image[30:50, 40:60] = np.inf
    image[0, :7] = -np.inf
    holes = ~np.isfinite(image)
    for ways in ((), ("--tile", "32", "--halo", "exact"), ("--tile", "48x64", "--halo", "exact", "--batch", "2")):
        result, entry = t.run(image, *ways)
        if result is None:
            return
        t.check(entry["holes"] == holes.sum(), f"{ways}: the record counts {entry['holes']} holes of {holes.sum()}")
        t.check(np.array_equal(result[holes], image[holes], equal_nan=True), f"{ways}: holes are kept as they were")
        t.check(np.isfinite(result[~holes]).all(), f"{ways}: everything else is a number")
        near = psnr(result[~holes], t.whole[~holes])
        t.check(near > 30, f"{ways}: the rest is as without holes: {near:.1f} dB")
        if not ways:
            first = result
        t.check(np.array_equal(result, first, equal_nan=True), f"{ways}: tiles give the same bits")
    queue = t.bench.record("denoise", t.path("in.npy"), t.path("queue.npy"), "--sigma", SIGMA, "--tile", "32", "--halo", "exact", env={"TESSERA_QUEUE": "1"})
    t.check(queue is not None and np.array_equal(np.load(t.path("queue.npy")), first, equal_nan=True), "and so does the way of a card")
    for peak in ("plan", "measured"):
        t.check(queue[peak]["peak_bytes"]["total"] > 0, f"{peak}: bytes are counted")
    whole = t.bench.record("denoise", t.path("in.npy"), t.path("out.npy"), "--sigma", SIGMA)
    t.check(whole["plan"]["peak_bytes"] == whole["measured"]["peak_bytes"], f"planned {whole['plan']['peak_bytes']} = counted {whole['measured']['peak_bytes']}")
    everything, entry = t.run(np.full((40, 40), np.nan, np.float32))
    t.check(everything is not None and np.isnan(everything).all(), "an image of holes stays one")


def check_large_holes(t):
    """Pixels beside a large hole are restored as those at an image's border are."""
    clean, image = noisy(120, 160, seed=3)
    for name, hole, beside in (("above", np.s_[:60], np.s_[60:63]), ("below", np.s_[60:], np.s_[57:60]),
                               ("left", np.s_[:, :80], np.s_[:, 80:83]), ("right", np.s_[:, 80:], np.s_[:, 77:80])):
        hollow = image.copy()
        hollow[hole] = np.nan
        given = np.isfinite(hollow)
        part = np.ascontiguousarray(hollow[given.any(1)][:, given.any(0)])
        border = np.full_like(hollow, np.nan)
        border[given] = t.run(part, "--range", "0,1")[0].ravel()
        result, _ = t.run(hollow, "--range", "0,1")
        if result is None:
            return
        here, there = psnr(result[beside], clean[beside]), psnr(border[beside], clean[beside])
        t.check(here > there - 3, f"beside a hole {name} {here:.1f} dB, at a border {there:.1f} dB")


def check_marks(t):
    """The value that a refusal advises to declare is that of the samples, in all digits; a declared value stays declared."""
    heights = 400 + 100 * t.clean.astype(np.float64)
    for kind, fill, image, options in ((np.float32, np.finfo(np.float32).min, heights, ()), (np.float32, -1.2345678e10, heights, ()), (np.float64, -9999.1, heights, ()),
                                       (np.float32, -9999.123, heights, ("--range", "0,700")), (np.int32, -2147483647, 1e6 * heights, ()), (np.int32, -2147483647, heights, ("--range", "0,700")),
                                       (np.float64, -123456.789012345, 1e9 + heights / 1e3, ()), (np.float32, 1e30, 1e-12 * heights, ()), (np.float32, -9999, 1e-30 * heights, ())):
        spoiled = image.astype(kind)
        spoiled[30:50, 20:50] = fill
        np.save(t.path("spoiled.npy"), spoiled)
        said = t.bench.run("denoise", t.path("spoiled.npy"), t.path("marks.npy"), *options).err
        named = said.partition("-a_nodata ")[2].partition(",")[0] or "nan"
        words = said.partition("samples go from ")[2].partition(", and")[0].split(" to ")
        low, high = (float(word) for word in words) if len(words) == 2 else (0, 0)
        valid = spoiled[spoiled != spoiled[30, 20]].astype(float)
        span = float(valid.max()) - float(valid.min())
        t.check(kind(float(named)) == spoiled[30, 20] and abs(low - valid.min()) + abs(high - valid.max()) < 0.2 * span, f"{kind.__name__}, {fill!r} {options}: {said.strip()}")
    spoiled = heights.astype(np.int32)
    spoiled[30:50, 20:50] = -2147483647
    np.save(t.path("spoiled.npy"), spoiled)
    t.bench.check_refused(t.bench.run("denoise", t.path("spoiled.npy"), t.path("marks.npy")), 2, f"go up to {spoiled.max()}, and some are -2147483647;")
    spoiled = heights.astype(np.float32)
    spoiled[30:50, 20:50], spoiled[5:9, 7:12] = -9999, -32768
    t.path("spoiled.bin").write_bytes(spoiled.tobytes())
    t.path("spoiled.hdr").write_text(f"ENVI\nsamples = {spoiled.shape[1]}\nlines = {spoiled.shape[0]}\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\ndata type = 4\n"
                                     "interleave = bsq\nbyte order = 0\ndata ignore value = -32768\n")
    if t.bench.has_gdal():
        for options in ((), ("--range", "0,700", "--sigma", "0.02")):
            said = t.bench.run("denoise", t.path("spoiled.bin"), t.path("marks.npy"), *options).err
            t.check("some are -9999" in said and "the nodata value -32768, which the file declares" in said and "a_nodata" not in said, f"beside a declared value {options}: {said.strip()}")


def check_ranges(t):
    for low, high, dtype in ((200, 1200, np.float32), (-50, 4000, np.int16), (0, 2**31 - 1, np.int32), (10**6, 3 * 10**9, np.uint32)):
        scaled = t.image.astype(np.float64) * (high - low) + low
        scaled = scaled.astype(np.float32) if dtype == np.float32 else np.clip(np.rint(scaled), np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
        result, entry = t.run(scaled, "--range", f"{low},{high}")
        if result is None:
            continue
        step = 1 / (high - low)
        back = (result.astype(np.float64) - low) / (high - low)
        inside = (scaled > np.iinfo(dtype).min) & (scaled < np.iinfo(dtype).max) if dtype != np.float32 else np.ones(scaled.shape, bool)
        t.check(np.abs(back - t.whole)[inside].max() < 0.01 + 2 * step, f"{dtype.__name__} from {low} to {high}: as on [0,1]")
        t.check(entry["range"] == [low, high] and entry["range_from"] == "given", f"the record says so: {entry['range']}")
        np.save(t.path("raw.npy"), scaled)
        refused = t.bench.run("denoise", t.path("raw.npy"), t.path("no.npy"), "--sigma", SIGMA)
        t.bench.check_refused(refused, 2, "raw.npy", "--range", "--sigma")
        result, entry = t.run(scaled, sigma=None)
        t.check(result is not None and entry["range_from"] == "data" and entry["sigma_from"] == "estimate",
                f"{dtype.__name__}: without sigma the data's own range serves: {entry}")
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--range", "5,5"), 2, "--range")
    for extreme in ("0,1e-45", "-1e308,1e308", "1e308,1.7e308"):
        t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), f"--range={extreme}"), 2, "--range")
    huge = t.image.copy()
    huge[3, 5], huge[7, 9] = 3.4e38, -3.4e38
    np.save(t.path("huge.npy"), huge)
    t.check(t.bench.run("denoise", t.path("huge.npy"), t.path("no.npy")).status != 0, "samples at the end of float32 are refused")
    broken = dncnn(1, depth=3, width=16)
    broken["in_conv.weight"][2, 0, 1, 1] = np.nan
    refused = t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--model", write_safetensors(t.path("nan.safetensors"), broken))
    t.bench.check_refused(refused, 1, "nan.safetensors", "in_conv.weight", "NaN")
    unit, entry = t.run(t.image)
    t.check(entry["range"] == [0, 1] and entry["range_from"] == "as it is", f"floats of [0,1] with noise are taken as they are: {entry['range']}")
    tall = np.full((400, 250), 0.5, np.float32)  # 100000 samples: every second one is kept for the tails
    tall[300:] = 2.5
    np.save(t.path("tall.npy"), tall)
    record = t.bench.record("plan", "denoise", t.path("tall.npy"), t.path("no.npy"))
    said = record["denoise"]["files"][0] if record else {}
    t.check(said.get("range_from") == "data", f"the tails are those of the whole image, its last rows too: {said}")
    for fill in (-9999, -3.4e38, 1e20):
        spoiled = (400 + 100 * t.image).astype(np.float32)
        spoiled[30:50, 20:50] = fill
        np.save(t.path("spoiled.npy"), spoiled)
        t.bench.check_refused(t.bench.run("denoise", t.path("spoiled.npy"), t.path("no.npy")), 2, "spoiled.npy", "missing data", "--range")
    for fill, share in ((-9999, 0.02), (-32768, 0.6), (-999, 0.02)):  # over 3900 m of heights
        spoiled = (370 + 3900 * t.clean).astype(np.float32)
        spoiled.ravel()[:int(share * spoiled.size)] = fill
        np.save(t.path("spoiled.npy"), spoiled)
        t.bench.check_refused(t.bench.run("denoise", t.path("spoiled.npy"), t.path("no.npy")), 2, f"some are {fill}")
    check_marks(t)
    large = np.random.default_rng(7).integers(0, 2**31, (40, 50)).astype(np.int32)
    for words in (("--strength", "0"), ("--sigma", "0"), ("--sigma", "0", "--range", "0,1")):
        same, _ = t.run(large, *words, sigma=None)
        t.check(np.array_equal(same, large), f"{words}: the input, to the last bit")
    bands = np.stack([400 + 100 * t.image, 0.5 * t.image, t.image, t.image, t.image], -1)
    np.save(t.path("bands.npy"), bands[..., :4].astype(np.float32))
    t.bench.check_refused(t.bench.run("denoise", t.path("bands.npy"), t.path("no.npy")), 2, "different ranges", "band 2", "(array[..., N - 1] in Python)")
    np.save(t.path("planes.npy"), np.ascontiguousarray(bands[..., :4].transpose(2, 0, 1)).astype(np.float32))
    t.bench.check_refused(t.bench.run("denoise", t.path("planes.npy"), t.path("no.npy"), "--axes", "CHW"), 2, "different ranges", "(array[N - 1] in Python)")
    pair = np.stack([t.clean, t.clean], -1) + np.random.default_rng(2).standard_normal((*t.clean.shape, 2)) * [0.02, 0.12]
    result, entry = t.run(pair.astype(np.float32), sigma=None)
    errors = [psnr(result[..., c], t.clean) for c in range(2)]
    alone = [psnr(t.run(np.ascontiguousarray(pair[..., c]).astype(np.float32), sigma=None, name="one.npy", out="one_out.npy")[0], t.clean) for c in range(2)]
    t.check(all(a > b - 0.5 for a, b in zip(errors, alone)), f"channels of a gray model have noise levels of their own: {errors}, alone {alone}")
    faint = (0.5 + 0.01 * t.image).astype(np.float32)
    result, entry = t.run(faint, sigma=None)
    t.check(entry["range_from"] == "data" and psnr((result - 0.5) * 100, t.clean) > psnr(t.image, t.clean) + 6,
            f"little contrast is spread: {psnr((result - 0.5) * 100, t.clean):.1f} dB, before {psnr(t.image, t.clean):.1f}")
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", "11"), 2, "--sigma 11", "11/255")
    same, _ = t.run(t.image, sigma=0)
    t.check(np.array_equal(same, t.image), "no noise: nothing changes")
    centred = (t.image - 0.5).astype(np.float32)
    result, entry = t.run(centred, sigma=None)
    t.check(entry["range_from"] == "data" and psnr(result + 0.5, t.clean) > psnr(t.image, t.clean) + 6,
            f"an image about 0 has a range of its own: {psnr(result + 0.5, t.clean):.1f} dB, before {psnr(t.image, t.clean):.1f}")
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", SIGMA), 2, "--range")
    said = t.bench.run("denoise", t.path("in.npy"), t.path("out.npy"), "--sigma", SIGMA, "--range", "0.2,1")
    t.check("below the range" in said.err, f"samples below the range are doubted: {said.err.strip()[:200]}")
    typed, entry = t.run((t.image * 100).astype(np.float32), "--range", "type", sigma=10)
    t.check(np.abs(typed / 100 - t.whole).max() < 1e-3 and entry["range_from"] == "type", "type: floats as they are")
    dark = np.clip(np.rint(t.image * 4095), 0, 4095).astype(np.uint16)
    np.save(t.path("dark.npy"), dark)
    said = t.bench.run("plan", "denoise", t.path("dark.npy"), t.path("no.npy"), "--sigma", "25/255")
    t.check(said.status == 0 and "--range 0,4095" in said.err, f"12 bits in 16 are doubted: {said.err.strip()[:200]}")


def check_voids(t):
    """Samples of the nodata value stay what they are, and no restored sample becomes one."""
    rng, least = np.random.default_rng(3), np.iinfo(np.int32).min
    for dtype, code, nodata, span, ways in ((np.uint8, 1, 7, "0,255", ()), (np.int16, 2, -300, "-400,0", ()), (np.float32, 4, 0, "0,1", ()),
                                            (np.int32, 3, least, f"0,{2**31}", ("--strength", 0))):
        step = 1 if dtype != np.float32 else np.float32(1e-3)
        image = (nodata + step * rng.choice((1, 2) if nodata == least else (-2, -1, 1, 2), (24, 40))).astype(dtype)
        image[5:9, 11:20] = nodata
        image.tofile(t.path("void.bsq"))
        t.path("void.hdr").write_text("ENVI\nsamples = 40\nlines = 24\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
                                      f"data type = {code}\ninterleave = bsq\nbyte order = 0\ndata ignore value = {nodata}\n")
        record = t.bench.record("denoise", t.path("void.bsq"), t.path("kept.bsq"), "--sigma", 0.1, "--range", span, *ways)
        if not record:
            continue
        result = np.fromfile(t.path("kept.bsq"), dtype).reshape(image.shape)
        t.check(record["denoise"]["files"][0]["holes"] == 36 and np.array_equal(result == nodata, image == nodata),
                f"{dtype.__name__}: the samples of {nodata} are those of the input: {(result == nodata).sum()} of 36")


def check_axes(t):
    slices = np.stack([noisy(seed=i)[1] for i in range(6)])
    result, entry = t.run(slices)
    t.check(entry.get("axes") == "DHW" and entry.get("depth") == 6, f"(D,H,W) is a volume: {entry}")
    for i in range(6):
        alone, _ = t.run(slices[i], name="slice.npy", out="slice_out.npy")
        t.check(np.array_equal(result[i], alone), f"slice {i} is as if it were alone")
    record = t.bench.record("denoise", t.path("in.npy"), t.path("psnr.npy"), "--sigma", SIGMA, "--truth", t.path("in.npy"), "--add-noise", "0.05")
    t.check(record["input"]["depth"] == 6 and record["quality"]["psnr_db"] > 15, "a truth is compared slice by slice")
    tiled, _ = t.run(slices, "--tile", "32", "--halo", "exact")
    t.check(np.array_equal(result, tiled), "tiles of slices give the same bits")
    limited = t.bench.record("denoise", t.path("in.npy"), t.path("lim.npy"), "--sigma", SIGMA, "--memory", "64M")
    t.check(limited["plan"]["peak_bytes"] == limited["measured"]["peak_bytes"], "planned = counted for a volume")
    said = t.bench.run("plan", "denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", SIGMA)
    t.check("volume" in said.out and "DHW" in said.out, f"the plan says which: {said.out}")
    colour = noisy(channels=3)[1]
    interleaved, entry = t.run(colour)
    t.check(entry.get("axes") == "HWC", "a last axis of 3 is channels")
    planes = np.ascontiguousarray(colour.transpose(2, 0, 1))
    np.save(t.path("planes.npy"), planes)
    t.bench.check_refused(t.bench.run("denoise", t.path("planes.npy"), t.path("no.npy"), "--sigma", SIGMA), 1, "channels, height, width", "--axes")
    result, entry = t.run(planes, "--axes", "CHW")
    t.check(result is not None and np.array_equal(result.transpose(1, 2, 0), interleaved), "(C,H,W) gives what (H,W,C) gives, in its own order")
    as_volume, entry = t.run(planes, "--axes", "DHW")
    t.check(entry.get("depth") == 3 and as_volume.shape == planes.shape, "or a volume of 3 slices, if told")
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", SIGMA, "--axes", "HW"), 1, "HW")
    np.save(t.path("in.npy"), slices)
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.png"), "--sigma", SIGMA), 2, "volume", ".npy")


def convolve(volume, kernels, bias):
    """(C,D,H,W) by kernels (O,C,3,3,3), zero outside."""
    out = np.zeros((kernels.shape[0], *volume.shape[1:]))
    padded = np.pad(volume, ((0, 0), (1, 1), (1, 1), (1, 1)))
    _, depth, height, width = volume.shape
    for dz, dy, dx in np.ndindex(3, 3, 3):
        out += np.tensordot(kernels[:, :, dz, dy, dx], padded[:, dz:dz + depth, dy:dy + height, dx:dx + width], 1)
    return out + bias[:, None, None, None]


def check_volume_models(t):
    """A model whose kernels are 3-D sees all slices at once: the residual network DnCNN by hand."""
    flat, rng, deep = dncnn(1, 3, 8), np.random.default_rng(3), {}
    for name, array in flat.items():
        deep[name] = (0.1 * rng.standard_normal((*array.shape[:2], 3, *array.shape[2:]))).astype(np.float32) if array.ndim == 4 else array
    model = write_safetensors(t.path("deep.safetensors"), deep)
    slices = np.stack([noisy(40, 56, seed=i)[1] for i in range(9)])
    value, convs = slices[None].astype(np.float64), [n[:-len(".weight")] for n in deep if n.endswith(".weight")]
    for i, name in enumerate(convs):
        value = convolve(value, deep[name + ".weight"].astype(np.float64), deep.get(name + ".bias", np.zeros(len(deep[name + ".weight"]))).astype(np.float64))
        value = np.maximum(value, 0) if i + 1 < len(convs) else value
    record = None
    for way in ((), ("--tile", "16", "--halo", "exact")):
        result, entry = t.run(slices, *way, model=model, sigma=None)
        if result is None:
            return
        t.check(entry.get("slices") == "together", f"{way}: slices are taken together: {entry.get('slices')}")
        near = min(np.abs(result - (slices + value[0])).max(), np.abs(result - (slices - value[0])).max(), np.abs(result - value[0]).max())
        t.check(near < 1e-4, f"{way}: as NumPy's convolutions give it, {near:.1e}")
        record = t.bench.record("denoise", t.path("in.npy"), t.path("again.npy"), "--model", model, *way)
        t.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"{way}: planned = counted")
    refused = t.bench.run("denoise", t.path("slice.npy"), t.path("no.npy"), "--model", model)
    t.bench.check_refused(refused, 1, "slice.npy", "3-D", "depth, height, width")
    refused = t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--model", model, "--memory", "1M")
    t.bench.check_refused(refused, 1, "--memory", "would do")


def check_levels(t):
    half = np.full(t.image.shape, SIGMA, np.float32)
    np.save(t.path("map.npy"), half)
    same, entry = t.run(t.image, "--sigma", t.path("map.npy"), sigma=None)
    t.check(np.array_equal(same, t.whole) and entry["sigma_from"] == "map", "a constant map is that sigma")
    half[:, 52:] = 0
    np.save(t.path("map.npy"), half)
    mixed, _ = t.run(t.image, "--sigma", t.path("map.npy"), sigma=None)
    t.check(np.array_equal(mixed[:, 52:], t.image[:, 52:]) and np.abs(mixed - t.image)[:, :44].mean() > 0.05, "where the map is 0 nothing changes")
    tiled, _ = t.run(t.image, "--sigma", t.path("map.npy"), "--tile", "32", "--halo", "exact", sigma=None)
    queue = t.bench.record("denoise", t.path("in.npy"), t.path("queue.npy"), "--sigma", t.path("map.npy"), env={"TESSERA_QUEUE": "1"})
    t.check(np.array_equal(tiled, mixed) and queue and np.array_equal(np.load(t.path("queue.npy")), mixed), "in tiles and the way of a card, too")
    np.save(t.path("small.npy"), half[:-1])
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", t.path("small.npy")), 1, "small.npy", "72 x 104")
    half[3, 4] = -1
    np.save(t.path("map.npy"), half)
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--sigma", t.path("map.npy")), 1, "map.npy", "-1")
    plain = write_safetensors(t.path("dncnn.safetensors"), dncnn(1, depth=3, width=16))
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--model", plain, "--sigma", t.path("small.npy")), 2, "no noise level")
    t.check(not t.path("no.npy").exists(), "nothing was written by any of these")
    for level in (0.02, 0.1, 0.2):
        image = t.clean + level * np.random.default_rng(9).standard_normal(t.clean.shape)
        _, entry = t.run(image.astype(np.float32), sigma=None)
        t.check(entry["sigma_from"] == "estimate" and abs(entry["sigma"] / level - 1) < 0.1, f"sigma {level} is estimated as {entry['sigma']:.4f}")
    _, entry = t.run(t.clean, "--add-noise", "0.1", "--sigma", "auto", sigma=None)
    t.check(entry["sigma_from"] == "estimate" and abs(entry["sigma"] / 0.1 - 1) < 0.1, f"noise that is added is estimated when asked for: {entry['sigma']:.4f}")
    np.save(t.path("tiny.npy"), t.image[:5, :5])
    t.bench.check_refused(t.bench.run("denoise", t.path("tiny.npy"), t.path("no.npy")), 2, "tiny.npy", "--sigma")


def check_blends(t):
    for strength in (0, 0.25, 1):
        result, _ = t.run(t.image, "--strength", strength)
        t.check(np.abs(result - (strength * t.whole + (1 - strength) * t.image)).max() < 1e-6, f"strength {strength} is a blend")
    t.bench.check_refused(t.bench.run("denoise", t.path("in.npy"), t.path("no.npy"), "--strength", "2"), 2, "--strength")


def check_map_values(t):
    """Levels as the file of the map means them, and holes in both."""
    levels = np.full(t.image.shape, SIGMA)
    items = '<Item name="SCALE" sample="0" role="scale">0.001</Item><Item name="OFFSET" sample="0" role="offset">0.05</Item>'
    write_tiff(t.path("map.tif"), np.uint16(np.rint((levels - 0.05) / 0.001)), items=items)
    scaled, _ = t.run(t.image, "--sigma", t.path("map.tif"), sigma=None)
    t.check(np.abs(scaled - t.whole).max() < 1e-5, f"scale and offset of a map are applied: {np.abs(scaled - t.whole).max():.2g}")
    hollow = t.image.copy()
    hollow[10:20, 30:50] = np.nan
    given, _ = t.run(hollow)
    holes = np.isnan(hollow)
    np.save(t.path("map.npy"), np.where(holes, np.nan, levels).astype(np.float32))
    write_tiff(t.path("void.tif"), np.where(holes, -1, levels).astype(np.float32), nodata="-1")
    for name in ("map.npy", "void.tif"):
        both, _ = t.run(hollow, "--sigma", t.path(name), sigma=None)
        t.check(both is not None and np.array_equal(both, given, equal_nan=True), f"{name}: a map may have holes where the image has them")
        record = t.bench.record("denoise", t.path("in.npy"), t.path("out.npy"), "--sigma", t.path(name))
        t.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"{name}: and the plan is right")
        np.save(t.path("full.npy"), t.image)
        t.bench.check_refused(t.bench.run("denoise", t.path("full.npy"), t.path("no.npy"), "--sigma", t.path(name)), 1, name, "row 10, column 30", "has no value")
    levels[7, 9] = 2
    np.save(t.path("map.npy"), levels.astype(np.float32))
    t.bench.check_refused(t.bench.run("denoise", t.path("full.npy"), t.path("no.npy"), "--sigma", t.path("map.npy")), 1, "sample 2 in row 7, column 9")
    np.save(t.path("volume.npy"), np.stack([t.image] * 5))
    t.bench.check_refused(t.bench.run("denoise", t.path("volume.npy"), t.path("no.npy"), "--sigma", t.path("map.npy")), 1, "is 72 x 104 with 1", "is 5 x 72 x 104 with 1")


def check_notes(t):
    """What was done differently from what was asked, or would be expected."""
    np.save(t.path("heights.npy"), np.float32(800 + 1400 * t.image))
    said = t.bench.run("denoise", t.path("heights.npy"), t.path("heights.png"), "--range", "800,2200", "--sigma", SIGMA)
    t.check("800 to 2200 scaled to 0 to 65535" in said.err, f"a scaled result is called that: {said.err.strip()}")
    _, entry = t.run(t.image, "--add-noise", "0.05", sigma=None)
    t.check(entry.get("sigma_from") == "added", f"the level of added noise comes from there: {entry.get('sigma_from')}")
    record = t.bench.record("denoise", t.path("in.npy"), t.path("out.npy"), "--add-noise", "0.05", "--strength", "0.5", "--seed", "7")["denoise"]
    t.check((record.get("add_noise"), record.get("strength"), record.get("seed")) == (0.05, 0.5, 7), f"the record has the settings: {sorted(record)}")
    np.save(t.path("bands.npy"), np.stack([t.image[:60, :60]] * 12, -1))
    said = t.bench.run("plan", "denoise", t.path("bands.npy"), t.path("out.npy"))
    t.check("volume of 60 slices of 60 x 12" in said.err and "--axes HWC" in said.err, f"12 bands that are read as a volume: {said.err.strip()}")
    np.save(t.path("bands.npy"), np.stack([t.image[:60, :60]] * 5, -1))
    said = t.bench.run("denoise", t.path("bands.npy"), t.path("out.npy"))
    t.check(said.status == 2 and "--axes HWC" in said.err, f"also when it cannot be estimated for that: {said.err.strip()}")
    np.save(t.path("void.npy"), np.full((40, 40), np.nan, np.float32))
    said = t.bench.run("denoise", t.path("void.npy"), t.path("out.npy"), "--overwrite")
    t.check("no data" in said.err and "equal" not in said.err, f"an image without data: {said.err.strip()}")
    for dtype, low in ((np.uint8, 7), (np.uint16, 1783)):
        counts = (low + 100 * t.image).clip(low, low + 120).astype(dtype)
        _, entry = t.run(counts, sigma=None)
        t.check(entry["range"] in ([counts.min(), counts.max()], [0, np.iinfo(dtype).max]), f"a range of the data is one of samples: {entry['range']}")


def check_doubles(t):
    """Doubles whose differences float32 would lose."""
    clean, image = np.float64(t.clean), np.float64(t.clean) + SIGMA * np.random.default_rng(4).standard_normal(t.clean.shape)
    plain, _ = t.run(image, "--range", "0,1", sigma=None)
    t.check(plain.dtype == np.float32, f"doubles on [0,1] are written as float32, not {plain.dtype}")
    for offset, unit in ((1e7, 1), (5e6, 1), (-3e12, 50), (0, 1e-300)):
        samples = offset + unit * image
        kept, entry = t.run(samples, sigma=0)
        t.check(kept.dtype == np.float64 and np.array_equal(kept, samples), f"sigma 0 changes nothing at {offset} + {unit}, which is {entry.get('type')}")
        estimated, entry = t.run(samples, sigma=None)
        t.check(estimated is not None and psnr((estimated - offset) / unit, clean) > psnr(image, clean) + 6, f"and it is denoised: {entry.get('sigma')}, {entry.get('range')}")
        given, _ = t.run(samples, "--range", f"{offset!r},{offset + unit!r}", sigma=None, name="given.npy")
        t.check(np.abs((given - offset) / unit - plain).max() < 1e-3, f"as without the offset: {np.abs((given - offset) / unit - plain).max():.2g}")
        np.save(t.path("truth.npy"), offset + unit * clean)
        record = t.bench.record("denoise", t.path("given.npy"), t.path("out.npy"), "--range", f"{offset!r},{offset + unit!r}", "--truth", t.path("truth.npy"))
        t.check(abs(record["quality"]["psnr_db"] - psnr(np.clip((given - offset) / unit, 0, 1), np.clip(clean, 0, 1))) < 0.01, f"the truth too: {record['quality']['psnr_db']:.2f} dB")
        t.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], "and the plan is right")
    samples = 1e7 + np.stack([clean + SIGMA * np.random.default_rng(c).standard_normal(clean.shape) for c in range(3)])
    samples[0, :5, :7] = np.nan
    for ways in ((), ("--tile", "32", "--halo", "exact")):
        result, entry = t.run(samples, "--axes", "CHW", *ways, sigma=None)
        t.check(result.dtype == np.float64 and np.array_equal(np.isnan(result), np.isnan(samples)) and psnr(result[1] - 1e7, clean) > psnr(image, clean) + 6, "planes and holes")
        first = result if not ways else first
    t.check(np.array_equal(result, first, equal_nan=True), "tiles give the same bits")
    if t.bench.has_gdal():
        samples = 1e7 + image
        samples[:5, :7] = -9999
        write_tiff(t.path("doubles.tif"), samples, nodata="-9999")
        t.bench.record("denoise", t.path("doubles.tif"), t.path("out.tif"), "--sigma", 0)
        t.check(np.frombuffer(t.path("out.tif").read_bytes(), "<f8", samples.size, struct.unpack("<I", tags_of(t.path("out.tif"))[273][:4])[0]).tobytes() == samples.tobytes(),
                "and TIFF")
        record = t.bench.record("denoise", t.path("doubles.tif"), t.path("out.tif"))
        t.check(record and record["denoise"]["files"][0]["holes"] == 35, "its nodata is a hole")
        made = np.frombuffer(t.path("out.tif").read_bytes(), "<f8", samples.size, struct.unpack("<I", tags_of(t.path("out.tif"))[273][:4])[0]).reshape(samples.shape)
        t.check(np.all(made[:5, :7] == -9999) and psnr(made[5:] - 1e7, clean[5:]) > psnr(image, clean) + 6, "which stays")


def check_types(t):
    for suffix, bits, dither in (("png", 16, False), ("png", 16, True)):
        t.run(t.image, *(["--dither"] if dither else []), out=f"out.{suffix}")
        made = read_png(t.path(f"out.{suffix}")).astype(np.float64) / (2**bits - 1)
        made = made[..., 0] if made.ndim == 3 else made
        off = np.abs(made - np.clip(t.whole, 0, 1)).max() * (2**bits - 1)
        t.check(off <= (1.01 if dither else 0.501), f"float to {bits} bits{', dithered' if dither else ''}: at most {off:.2f} steps off")
    said = t.bench.run("denoise", t.path("in.npy"), t.path("said.png"), "--sigma", SIGMA)
    t.check("uint16" in said.err and "rounded" in said.err, f"and it is said: {said.err.strip()[:200]}")
    rgba = to_integers(picture(40, 50, 4), np.uint16)
    write_png(t.path("rgba.png"), rgba)
    t.bench.record("denoise", t.path("rgba.png"), t.path("blend.png"), "--sigma", SIGMA, "--strength", "0.5")
    t.check(np.array_equal(read_png(t.path("blend.png"))[..., 3], rgba[..., 3]), "alpha stays as it was")


def check_counts(t):
    """Rates of less than a count: rounded to whole counts, most of the light would be lost."""
    y, x = np.mgrid[0:200, 0:200]
    rng, blob = np.random.default_rng(2), np.exp(-((y - 90) ** 2 + (x - 110) ** 2) / 2 / 40 ** 2)
    rates = np.stack([0.15 + top * blob for top in (0.2, 0.5, 1, 1.2, 1.5)])
    counts = rng.poisson(rates)
    for kind in (np.uint8, np.uint16, np.int16):
        for array, what in ((counts[-1], "an image"), (counts, "a stack")):
            result, entry = t.run(array.astype(kind), sigma=None)
            if result is None:
                continue
            kept = result.reshape(-1, 40000).sum(1) / array.reshape(-1, 40000).sum(1)
            t.check(np.abs(kept - 1).max() < 0.05, f"{what} of {np.dtype(kind)}: the sum of the counts is kept: {kept}")
            t.check(entry.get("dithered") is True, f"{what} of {np.dtype(kind)}: the record says that they are dithered")
    said = t.bench.run("denoise", t.path("in.npy"), t.path("out.npy"))
    t.check("dithered" in said.err and "float32" in said.err, f"and it is said: {said.err.strip()[:300]}")
    first = np.load(t.path("out.npy"))
    t.run(counts.astype(np.int16), "--tile", "64", "--halo", "exact", sigma=None)
    t.check(np.array_equal(np.load(t.path("out.npy")), first), "tiles give the same bits")
    floats, _ = t.run(counts[-1].astype(np.float32), sigma=None)
    t.check(floats is not None and np.abs(floats.sum() / counts[-1].sum() - 1) < 0.05, "floats keep them, too")
    # the same above an offset, and of means of frames, whose noise is less than a step
    smooth = 0.2 + 1.2 * blob
    for what, kind, offset, gain, read in (("counts above an offset", np.uint16, 100, 1, 0), ("two electrons a step", np.uint16, 100, 0.5, 1),
                                           ("dim 8 bits", np.uint8, 3, 1, 0.2), ("negative ones", np.int16, -50, 1, 0)):
        array = np.rint(gain * (rng.poisson(smooth / gain) + rng.normal(0, read, smooth.shape)) + offset).astype(kind)
        result, entry = t.run(array, sigma=None)
        kept = result is not None and (result - float(offset)).sum() / (array - float(offset)).sum()
        t.check(abs(kept - 1) < 0.05 and entry.get("dithered") is True, f"{what}: the light is kept: {kept:.3f}, dithered {entry.get('dithered')}")
    plain = np.rint(100 + 20 * blob + rng.normal(0, 0.7, blob.shape)).astype(np.uint8)
    _, entry = t.run(plain, sigma=None)
    t.check("dithered" not in entry, "an image with little noise and many steps is not dithered")
    # where samples have many steps nothing is dithered unasked, but on request
    bright = rng.poisson(20 * rates + 30).astype(np.uint16)[-1]
    plain, entry = t.run(bright, sigma=None)
    t.check("dithered" not in entry, "bright images are not dithered")
    dithered, entry = t.run(bright, "--dither", sigma=None)
    off = np.abs(dithered.astype(int) - plain)
    t.check(entry.get("dithered") is True and off.any() and off.max() <= 1, f"but on request, by up to {off.max()}")
    photo = to_integers(picture(80, 96, 3), np.uint8) // 60  # dark, 8 bits
    _, entry = t.run(photo, sigma=None)
    t.check("dithered" not in entry, "nor are photographs of 8 bits")


bench = Bench(sys.argv[1])
case = Case(bench)
checks = (check_holes, check_large_holes, check_ranges, check_axes, check_volume_models, check_levels, check_blends, check_map_values, check_notes, check_doubles, check_types, check_counts)
for check in checks + ((check_voids,) if bench.has_gdal() else ()):
    print(f"{check.__name__}:")
    check(case)
bench.finish()
