"""test_threads.py PROGRAM LIBRARY: two denoisers in two threads at once, and one shared by two threads."""
import threading

import numpy as np

from common import COLOUR, GRAY, picture, start

ROUNDS = 10


def together(bench, tasks, what):
    """Runs the tasks at once, each ROUNDS times; each returns whether its result was right."""
    good, barrier = [], threading.Barrier(len(tasks))

    def work(task):
        barrier.wait()
        good.extend(task() for _ in range(ROUNDS))

    threads = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.check(len(good) == ROUNDS * len(tasks) and all(good), what)


def main():
    bench, tessera = start()
    colour, gray = picture(48, 64), picture(56, 40, 1)
    with tessera.Denoiser(COLOUR, device="cpu") as first, tessera.Denoiser(GRAY, device="cpu") as second:
        wanted = first(colour, 0.1), second(gray, 0.2)
        together(bench, [lambda: np.array_equal(first(colour, 0.1), wanted[0]),
                         lambda: np.array_equal(second(gray, 0.2), wanted[1])], "two denoisers in two threads")
        small = colour[:32, :32]
        wanted_small = first(small, 0.1)
        together(bench, [lambda: np.array_equal(first(colour, 0.1), wanted[0]),
                         lambda: np.array_equal(first(small, 0.1), wanted_small)], "one denoiser shared by two threads")

    def whole():
        with tessera.Denoiser(COLOUR, device="cpu") as denoise:
            return np.array_equal(denoise(colour, 0.1), wanted[0])

    together(bench, [whole, whole], "opened, run and closed in two threads")
    bench.finish()


main()
