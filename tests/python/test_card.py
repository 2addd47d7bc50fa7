"""test_card.py PROGRAM LIBRARY: arrays on an NVIDIA card, on the caller's own stream, first without torch or cupy.

The arrays are made with the driver and exported through DLPack by hand, as any array library would."""
import os

import numpy as np

from common import COLOUR, Exported, picture, raises, skip, start
from tessera_card import Card, open_driver


def streams(bench, tessera, card):
    image = picture(72, 96)
    with tessera.Denoiser(COLOUR, device="cuda") as denoise:
        bench.check(denoise.device.startswith("cuda:0"), f"the device: {denoise.device}")
        wanted = denoise(image, 0.1)  # a host array: copied there and back by the library
        np.save(bench.path("in.npy"), image)
        bench.record("denoise", bench.path("in.npy"), bench.path("out.npy"), "--model", COLOUR, "--sigma", "0.1", "--device",
                     "cuda", "--range", "type")
        bench.check(np.array_equal(wanted, np.load(bench.path("out.npy"))), "a host array: the program's samples")
        plan = denoise.plan(image.shape, on_card=True)
        bench.check(plan.bytes["total"] > 0, f"bytes on the card: {plan.bytes}")
        for name, stream in (("its own stream", card.new_stream()), ("the default stream", None)):
            handle = stream.value if stream else 1
            source, target = card.empty(image.shape), card.empty(image.shape)
            # Nothing waits between these: only the stream's order makes the result right.
            source.upload(image, handle)
            answer = denoise(source, 0.1, out=target, stream=stream.value if stream else None)
            got = target.download(handle)
            card.wait(handle)
            bench.check(answer is target and np.array_equal(got, wanted), f"on {name}: {np.abs(got - wanted).max():.2e} off")
        planes = np.ascontiguousarray(image.transpose(2, 0, 1))[None]
        source, target = card.empty(planes.shape), card.empty(planes.shape)
        source.upload(planes, 1)
        denoise(source, 0.1, out=target, axes="NCHW")
        got = target.download(1)
        card.wait(1)
        bench.check(np.array_equal(got[0].transpose(1, 2, 0), wanted), "NCHW on the card")
        crop = source.part(slice(0, 1), slice(None), slice(10, 60), slice(5, 90, 2))
        target = card.empty(crop.shape)
        denoise(crop, 0.1, out=target, axes="NCHW")
        got = target.download(1)
        card.wait(1)
        bench.check(np.array_equal(got, denoise(planes[:, :, 10:60, 5:90:2], 0.1, axes="NCHW")), "a strided crop on the card")
        used = card.used()
        for _ in range(100):
            denoise(source, 0.1, out=source, axes="NCHW")
        card.wait(1)
        bench.check(card.used() == used, f"100 runs: {card.used() - used} bytes more on the card")
        raises(bench, tessera.OptionError, ["alike"], "in on the card, out on the host",
               lambda: denoise(source, 0.1, out=Exported(planes), axes="NCHW"))
    with tessera.Denoiser(COLOUR, device="cpu") as denoise:
        raises(bench, tessera.OptionError, ["cuda:0"], "an array on the card, a denoiser on the CPU",
               lambda: denoise(source, 0.1, out=source, axes="NCHW"))


def libraries(bench, tessera):
    """Arrays of torch and cupy, where they are installed: on a stream that the library asks them for."""
    planes = np.ascontiguousarray(picture(64, 80).transpose(2, 0, 1))[None]
    with tessera.Denoiser(COLOUR, device="cuda", axes="NCHW") as denoise:
        wanted = denoise(planes, 0.1)
        try:
            import torch
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                got = denoise(torch.from_numpy(planes).cuda(non_blocking=True), 0.1)
                bench.check(got.is_cuda and np.array_equal(got.cpu().numpy(), wanted), "a tensor of torch, on a stream of torch")
            got = denoise(torch.from_numpy(planes).cuda(), 0.1)
            bench.check(np.array_equal(got.cpu().numpy(), wanted), "a tensor of torch, on the default stream")
        except ImportError:
            print("left out: torch is not installed")
        try:
            import cupy
            with cupy.cuda.Stream(non_blocking=True):
                got = denoise(cupy.asarray(planes), 0.1)
                bench.check(isinstance(got, cupy.ndarray) and np.array_equal(cupy.asnumpy(got), wanted), "an array of cupy")
        except ImportError:
            print("left out: cupy is not installed")


def main():
    bench, tessera = start()
    driver = open_driver()
    if not driver:
        if os.environ.get("TESSERA_REQUIRE_GPU"):
            bench.check(False, "an NVIDIA card is there")
            bench.finish()
        skip("no NVIDIA card")
    streams(bench, tessera, Card(driver))
    libraries(bench, tessera)
    bench.finish()


main()
