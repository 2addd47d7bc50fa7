"""test_arrays.py PROGRAM LIBRARY: arrays of every type, order and stride give the program's results for the same samples."""
import numpy as np

from common import COLOUR, GRAY, Exported, picture, raises, start, to_integers

SIGMA = 0.1


def by_program(bench, array, model, *more):
    np.save(bench.path("in.npy"), array)
    bench.record("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", model, "--sigma", SIGMA, "--device", "cpu",
                 "--range", "type", *more)
    return np.load(bench.path("out.npy"))


def same(bench, got, wanted, what):
    bench.check(type(got) is np.ndarray and got.dtype == wanted.dtype and got.shape == wanted.shape and
                np.array_equal(got, wanted), what)


def types(bench, denoise):
    image = picture(40, 56)
    for array in (image, to_integers(image, np.uint8), to_integers(image, np.uint16)):
        same(bench, denoise(array, SIGMA), by_program(bench, array, COLOUR), f"{array.dtype}: the program's samples")
    wanted = denoise(image, SIGMA)
    got = denoise(image.astype(np.float64), SIGMA)
    bench.check(got.dtype == np.float64 and np.array_equal(got.astype(np.float32), wanted), "float64: as float32")
    half = image.astype(np.float16)
    got, wanted = denoise(half, SIGMA), denoise(half.astype(np.float32), SIGMA)
    bench.check(got.dtype == np.float16 and np.array_equal(got, wanted.astype(np.float16)), "float16: as float32, rounded")


def orders(bench, denoise):
    image = picture(48, 64)
    wanted = denoise(image[5:39, 8:50].copy(), SIGMA)
    large = np.full((80, 150, 4), np.nan, np.float32)
    crop = large[20:54, 11:95:2, 2::-1]  # every second column, channels backwards
    crop[:] = image[5:39, 8:50]
    before = large.copy()
    same(bench, denoise(crop, SIGMA), wanted, "a strided crop, read where it lies")
    bench.check(np.array_equal(large, before, equal_nan=True), "the input is left as it was")
    result = np.full_like(large, np.nan)
    into = result[20:54, 11:95:2, 2::-1]
    bench.check(denoise(crop, SIGMA, out=into) is into and np.array_equal(into, wanted), "into a strided crop")
    bench.check(np.isnan(result).sum() == result.size - into.size, "nothing beside the crop is written")

    first = np.ascontiguousarray(image.transpose(2, 0, 1))
    wanted = denoise(image, SIGMA)
    same(bench, denoise(first, SIGMA, axes="CHW"), wanted.transpose(2, 0, 1), "CHW")
    several = np.stack([first, first[:, ::-1], first[:, :, ::-1]])
    got = denoise(several, SIGMA, axes="NCHW")
    for index, image_of in enumerate(several):
        same(bench, got[index], denoise(image_of, SIGMA, axes="CHW"), f"NCHW: image {index} as alone")
    got = denoise(np.stack([image, image[::-1]]), SIGMA)
    same(bench, got[0], wanted, "NHWC without axes")
    inside = image.copy()
    bench.check(denoise(inside, SIGMA, out=inside) is inside and np.array_equal(inside, wanted), "out may be x")
    flipped = image[::-1, :, :]
    same(bench, denoise(flipped, SIGMA), denoise(flipped.copy(), SIGMA), "negative strides")

    records = np.zeros(48 * 64, np.dtype([("tag", "u1"), ("value", "f4", (3,))])).reshape(48, 64)
    records["value"] = image
    same(bench, denoise(records["value"], SIGMA), wanted, "a field of packed records")


def gray(bench, tessera):
    image = picture(40, 56, 1)
    with tessera.Denoiser(GRAY, device="cpu") as denoise:
        wanted = by_program(bench, image, GRAY)
        same(bench, denoise(image, SIGMA), wanted, "(H,W): the program's samples")
        volume = np.stack([image, image.T[:40, :40].repeat(2, 1)[:, :56]])
        same(bench, denoise(volume, SIGMA, axes="DHW")[0], wanted, "DHW: slice by slice")
        bench.check(denoise.channels == 1 and denoise.takes_sigma is True, "what the model takes")
    heights = image * 900 + 100
    with tessera.Denoiser(GRAY, device="cpu", range=(100, 1000)) as denoise:
        got = denoise(heights, SIGMA)
        bench.check(np.allclose(got, wanted * 900 + 100, atol=0.02), "range: samples that mean 0 and 1")


def estimated(bench, tessera):
    """Images of a batch have their own noise levels; the slices of a volume have the program's."""
    rng = np.random.default_rng(3)
    clean = np.stack([picture(96, 96), picture(96, 96)[::-1], np.full((96, 96, 3), 0.25, np.float32), picture(96, 96)[:, ::-1]])
    sigmas = np.array([0.02, 0.2, 0, 0.08], np.float32)
    images = clean + sigmas[:, None, None, None] * rng.normal(0, 1, clean.shape).astype(np.float32)
    for tile in (None, 48):
        with tessera.Denoiser(COLOUR, device="cpu", tile=tile) as denoise:
            wanted = np.stack([denoise(image) for image in images])
            same(bench, denoise(images), wanted, f"NHWC, tile {tile}: each image as alone")
            first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
            same(bench, denoise(first, axes="NCHW"), wanted.transpose(0, 3, 1, 2), f"NCHW, tile {tile}: each as alone")
            inside = images.copy()
            same(bench, denoise(inside, out=inside), wanted, f"NHWC in place, tile {tile}: each as alone")
    errors = np.sqrt(np.mean((wanted - clean) ** 2, (1, 2, 3)))
    bench.check((errors < np.maximum(0.5 * sigmas, 0.04)).all(), f"every image of a batch is denoised: {errors}")
    gray = np.ascontiguousarray(images[..., 1])
    with tessera.Denoiser(GRAY, device="cpu") as denoise:
        same(bench, denoise(gray, axes="NHW"), np.stack([denoise(image) for image in gray]), "NHW: each image as alone")
        volume = clean[:1, :, :, 1].repeat(12, 0)
        volume = volume + (np.linspace(0.02, 0.2, 12)[:, None, None] * rng.normal(0, 1, volume.shape)).astype(np.float32)
        np.save(bench.path("in.npy"), volume)
        bench.record("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", GRAY, "--device", "cpu", "--range", "type",
                     "--axes", "DHW")
        same(bench, denoise(volume, axes="DHW"), np.load(bench.path("out.npy")), "DHW: the program's levels of the slices")
        raises(bench, tessera.OptionError, ["image 0"], "an image without an estimate", lambda: denoise(gray[:, :6, :6], axes="NHW"))
        for bad, element in ((np.nan, np.float32), (np.inf, np.float64), (-np.inf, np.float16)):
            spoiled = gray.astype(element)
            spoiled[1, 3, 5] = bad
            for sigma in (None, 0.1):
                raises(bench, tessera.InputError, ["1 sample(s)", "slice 1, row 3, column 5"], f"{bad} among the samples", lambda: denoise(spoiled, sigma, axes="NHW"))
        hidden = np.ma.masked_array(gray[0], gray[0] > 0.5)
        raises(bench, tessera.OptionError, ["masked"], "a masked array", lambda: denoise(hidden, 0.1))
        same(bench, denoise(np.ma.masked_array(gray[0], False), 0.1), denoise(gray[0], 0.1), "a masked array of which nothing is masked")
        pair = np.stack([gray[0], np.full_like(gray[0], 0.5)], -1)
        for out in (None, pair.copy()):
            kept = denoise(pair if out is None else out, out=out)
            bench.check((kept[..., 1] == 0.5).all() and (kept[..., 0] != pair[..., 0]).any(), "a channel without noise stays")
        same(bench, denoise(gray[0], "25/255"), denoise(gray[0], 25 / 255), "sigma as a fraction")
        raises(bench, tessera.OptionError, ["sigma"], "sigma with a zero below", lambda: denoise(gray[0], "1/0"))


def tiles(bench, tessera):
    image = picture(150, 170)
    with tessera.Denoiser(COLOUR, device="cpu", tile="whole") as denoise:
        wanted = denoise(image, SIGMA)
    with tessera.Denoiser(COLOUR, device="cpu", tile=64, halo="exact") as denoise:
        same(bench, denoise(image, SIGMA), wanted, "exact tiles give the whole image's samples")
    same(bench, wanted, by_program(bench, image, COLOUR, "--tile", "whole"), "whole: the program's samples")


def exported(bench, denoise):
    image = picture(40, 56)
    wanted = denoise(image, SIGMA)
    for old in (False, True):
        result = np.empty_like(image)
        out = Exported(result, old)
        bench.check(denoise(Exported(image, old), SIGMA, out=out) is out and np.array_equal(result, wanted),
                    f"DLPack{', without a version' if old else ''}")
    out = np.empty((40, 28, 3), np.float32)
    denoise(Exported(image[:, ::2]), SIGMA, out=out)
    same(bench, out, denoise(image[:, ::2], SIGMA), "DLPack with strides")


def main():
    bench, tessera = start()
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        types(bench, denoise)
        orders(bench, denoise)
        exported(bench, denoise)
    gray(bench, tessera)
    estimated(bench, tessera)
    tiles(bench, tessera)
    bench.finish()


main()
