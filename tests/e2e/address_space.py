"""address_space.py PROGRAM: if the address space or the data of a process is limited (ulimit -v, ulimit -d), a job
without --memory plans within that limit and runs, with tiles if necessary."""
import resource
import sys

import numpy as np

from support import MIB, Bench, dncnn, picture, to_integers, write_safetensors

LIMITS = (("RLIMIT_AS", resource.RLIMIT_AS), ("RLIMIT_DATA", resource.RLIMIT_DATA))


def main():
    bench = Bench(sys.argv[1])
    model = write_safetensors(bench.path("dncnn.safetensors"), dncnn(depth=3, width=32))
    source, target = bench.path("in.npy"), bench.path("out.npy")
    np.save(source, to_integers(picture(1400, 1200), np.uint8))  # takes 400 MiB whole
    expected = None
    for name, which in LIMITS:
        for size in (180, 330, 2000):
            def limited(which=which, size=size):
                resource.setrlimit(which, (size * MIB, size * MIB))
            result = bench.run("denoise", source, target, "--model", model, "--halo", "exact", "--threads", "8", "--device", "cpu", "--quiet",
                               "--json", "-", preexec_fn=limited)
            if not bench.check(result.status == 0, f"{name} of {size} MiB: runs; {result.err.strip()}"):
                continue
            plan, image = result.record["plan"], np.load(target)
            expected = image if expected is None else expected
            bench.check(plan["peak_bytes"]["total"] <= size * MIB and (plan["tiles"] > 1 or size == 2000),
                        f"{name} of {size} MiB: {plan['tiles']} tiles in {plan['peak_bytes']['total'] / MIB:.0f} MiB")
            bench.check(np.array_equal(image, expected), f"{name} of {size} MiB: the same image")
    # A reconstruction takes its blocks after threads have used the C library's heaps.
    bench.path("problem.json").write_text('{"operator": "blur", "kernel": "k.npy", "measurement": "b.npy"}')
    np.save(bench.path("k.npy"), np.ones((5, 5)))
    np.save(bench.path("b.npy"), picture(504, 760))
    for size in (140, 176, 186, 196, 225):
        result = bench.run("reconstruct", target, "--problem", bench.path("problem.json"), "--iterations", 1, "--device", "cpu", "--quiet",
                           preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_AS, (size * MIB, size * MIB)))
        bench.check(result.status == 0 or "too little" in result.err, f"reconstruct, RLIMIT_AS of {size} MiB: runs or says what would do; {result.err.strip()}")
    # A --memory that the process cannot have: the message names the limit that it can raise.
    result = bench.run("reconstruct", target, "--problem", "deblur", "--size", 256, "--iterations", 1, "--device", "cpu", "--memory", "90M", "--quiet",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (90 * MIB, 90 * MIB)))
    bench.check_refused(result, 1, "ulimit -v allows the process 90M in all")
    bench.finish()


main()
