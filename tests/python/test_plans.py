"""test_plans.py PROGRAM LIBRARY: plans are cached and stay within their limit; handles are released; errors have the library's message."""
import gc
import os
import re

import numpy as np

from common import COLOUR, ROOT, Exported, picture, raises, resident, start

MIB = 1 << 20


def plans(bench, tessera):
    image = picture(64, 80)
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        plan = denoise.plan(image.shape)
        parts = plan.bytes
        bench.check(parts["total"] >= sum(parts[k] for k in ("weights", "activations", "workspace", "io")) > 0, f"bytes: {parts}")
        bench.check(plan.seconds > 0 and isinstance(plan.describe(), dict), "seconds and a description")
        bench.check((plan.shape, plan.axes, plan.dtype) == ((64, 80, 3), "HWC", "float32"), "what the plan is for")
        bench.check(denoise.plan([64, 80, 3], np.dtype("f4")) is plan, "a plan is kept")
        result = denoise(image, 0.1)
        bench.check(np.array_equal(plan.prepare().run(image, 0.1), result), "a plan runs by itself")
        bench.check(denoise.plan(image.shape, "uint8") is not plan, "another type, another plan")
        for width in range(81, 87):
            denoise.plan((64, width, 3))
        bench.check(denoise.plan(image.shape) is not plan, "plans of long ago are dropped")
        bench.check(np.array_equal(plan.run(image, 0.1), result), "a dropped plan that is still held runs")
    alone = tessera.Denoiser(COLOUR, device="cpu").plan(image.shape)
    gc.collect()
    bench.check(np.array_equal(alone.run(image, 0.1), result), "a plan outlives the name of its denoiser")
    with tessera.Denoiser(COLOUR, device="cpu", memory="128M") as denoise:
        plan = denoise.plan((3000, 4000, 3))
        bench.check(plan.bytes["total"] <= 128 * MIB, f"within the limit: {plan.bytes['total']} bytes")


def growth(bench, tessera):
    """What runs and handles leave behind; the margin is the allocator's, far below what one plan holds."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return  # a sanitizer keeps what was freed
    image = picture(64, 64)
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        out = denoise(image, 0.1)
        for _ in range(3):
            denoise(image, 0.1, out=out)
        before = resident()
        for _ in range(100):
            denoise(image, 0.1, out=out)
        grown = resident() - before
        bench.check(grown < MIB, f"100 runs: {grown} bytes more")
    for rounds in (4, 20):
        before = resident()
        for _ in range(rounds):
            with tessera.Denoiser(COLOUR, device="cpu") as denoise:
                denoise.plan(image.shape).prepare()
        grown = resident() - before
    bench.check(grown < 8 * MIB, f"20 denoisers opened and closed: {grown} bytes more")


def errors(bench, tessera):
    image = picture(40, 56)
    denoise = tessera.Denoiser(COLOUR, device="cpu")

    def case(kind, words, what, function):
        raises(bench, kind, words, what, function)

    case(tessera.InputError, ["nowhere"], "no such model", lambda: tessera.Denoiser("nowhere", device="cpu"))
    case(tessera.OptionError, ["gpu9"], "no such device", lambda: tessera.Denoiser(COLOUR, device="gpu9"))
    case(tessera.OptionError, ["fp3"], "no such precision", lambda: tessera.Denoiser(COLOUR, device="cpu", precision="fp3"))
    case(tessera.OptionError, ["5Q"], "memory", lambda: tessera.Denoiser(COLOUR, device="cpu", memory="5Q"))
    case(tessera.OverLimit, [], "a limit that is too small",
         lambda: tessera.Denoiser(COLOUR, device="cpu", memory="1M").plan((64, 64, 3)))
    case(tessera.OptionError, ["channel"], "channels that the model does not take", lambda: denoise(image[..., 0], 0.1))
    case(tessera.OptionError, ["int32"], "an element type", lambda: denoise(image.astype(np.int32), 0.1))
    case(tessera.OptionError, ["byte order"], "byte order", lambda: denoise(image.astype(">f4"), 0.1))
    case(tessera.OptionError, ["(3, 40, 56)", "axes"], "axes that must be named", lambda: denoise(image.transpose(2, 0, 1), 0.1))
    case(tessera.OptionError, ["HCC"], "axes named twice", lambda: denoise(image, 0.1, axes="HCC"))
    case(tessera.OptionError, ["sigma"], "a negative sigma", lambda: denoise(image, -2.0))
    case(tessera.OptionError, ["sigma"], "sigma that is no number", lambda: denoise(image, float("nan")))
    case(tessera.OptionError, ["overlap"], "out over a part of x", lambda: denoise(image, 0.1, out=image[::-1]))
    case(tessera.OptionError, ["alike"], "out of another type", lambda: denoise(image, 0.1, out=image.astype(np.float64)))
    read_only = image.copy()
    read_only.flags.writeable = False
    case(tessera.OptionError, ["read-only"], "out that cannot be written", lambda: denoise(image, 0.1, out=read_only))
    case(tessera.OptionError, ["out="], "a result of unknown kind", lambda: denoise(Exported(image), 0.1))
    case(tessera.OptionError, ["(9, 9, 3)"], "an array of another shape", lambda: denoise.plan((9, 9, 3)).run(image, 0.1))
    case(TypeError, ["list"], "a list", lambda: denoise([[1, 2], [3, 4]], 0.1))
    bench.check(np.isfinite(denoise(read_only, 0.1)).all(), "works after errors, from a read-only array")
    plan = denoise.plan(image.shape)
    with denoise:
        pass
    denoise.close()
    case(tessera.OptionError, ["closed"], "run after the end", lambda: denoise(image, 0.1))
    case(tessera.OptionError, ["closed"], "a plan after the end", lambda: plan.bytes)
    kinds = (tessera.OptionError, ValueError), (tessera.InputError, ValueError), (tessera.OverLimit, MemoryError), \
        (tessera.OutOfMemory, MemoryError), (tessera.IOFailed, OSError)
    bench.check(all(issubclass(kind, (tessera.Error, usual)) and issubclass(kind, usual) for kind, usual in kinds),
                "errors are of the usual kinds too")
    bench.check(tessera.OverLimit("x").status == "over_limit", "status")


def files(bench, tessera):
    image = picture(40, 56)
    np.save(bench.path("a.npy"), image)
    record = tessera.denoise_file(bench.path("a.npy"), bench.path("b.npy"), 0.1, model=COLOUR, device="cpu")
    bench.check(record["command"] == "denoise" and record["measured"]["seconds"] > 0, "denoise_file: the record")
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        bench.check(np.array_equal(np.load(bench.path("b.npy")), denoise(image, 0.1)), "denoise_file: the samples")
    np.save(bench.path("a.npy"), 400 + 3000 * image)
    for given, expected in (((400, 3400), [400, 3400]), ("type", [0, 1])):
        record = tessera.denoise_file(bench.path("a.npy"), bench.path("b.npy"), 0.1, model=COLOUR, device="cpu", range=given)
        bench.check(record["denoise"]["files"][0]["range"] == expected, f"denoise_file: range {given}: {record['denoise']['files'][0]['range']}")
        with tessera.Denoiser(COLOUR, device="cpu", range=None if given == "type" else given) as denoise:
            bench.check(np.array_equal(np.load(bench.path("b.npy")), denoise((400 + 3000 * image).astype(image.dtype), 0.1)), f"the samples with range {given}")
    raises(bench, tessera.OptionError, ["range", "the smaller first"], "denoise_file: a range upside down",
           lambda: tessera.denoise_file(bench.path("a.npy"), bench.path("c.npy"), device="cpu", range=(1, 0)))
    raises(bench, tessera.InputError, ["missing.npy"], "denoise_file: a missing file",
           lambda: tessera.denoise_file(bench.path("missing.npy"), bench.path("c.npy"), device="cpu"))
    raises(bench, tessera.Interrupted, [], "denoise_file: stopped", lambda: tessera.denoise_file(
        bench.path("a.npy"), bench.path("c.npy"), 0.1, device="cpu", progress=lambda *state: False))
    raises(bench, ZeroDivisionError, [], "denoise_file: an exception in progress", lambda: tessera.denoise_file(
        bench.path("a.npy"), bench.path("c.npy"), 0.1, device="cpu", progress=lambda *state: 1 / 0))


def main():
    bench, tessera = start()
    header = (ROOT / "include" / "tessera.h").read_text()
    bench.check(f'TESSERA_VERSION "{tessera.__version__}"' in header, "the version is the header's")
    statuses = re.search(r"typedef enum tess_status \{(.*?)\}", header, re.S)[1]
    names = [name.lower() for name in re.findall(r"TESS_(\w+)", statuses)][1:]
    bench.check(names == [kind.status for kind in tessera.errors.BY_STATUS], "an exception for each status, in order")
    plans(bench, tessera)
    errors(bench, tessera)
    files(bench, tessera)
    growth(bench, tessera)
    bench.finish()


main()
