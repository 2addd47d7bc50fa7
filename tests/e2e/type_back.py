"""The number that a refusal for memory names does when it is typed back, and a plan says the same."""
import json
import re
import sys

import scan_scene
from support import Bench, np, picture

bench = Bench(sys.argv[1])
out = bench.path("out.npy")
TURN, ORBIT = np.arange(40) * 4.5, scan_scene.orbit(np.arange(24) * 15.0)
np.save(bench.path("k.npy"), np.ones((5, 5)))
np.save(bench.path("blur.npy"), picture(200, 300))
np.save(bench.path("radon.npy"), scan_scene.sinogram(TURN, 96, [(0.02, 0, 0, 30)]).astype(np.float32))
np.save(bench.path("vectors.npy"), ORBIT)
np.save(bench.path("cone.npy"), scan_scene.views(ORBIT, 28, 40, [(0.04, 0, 0, 0, 9)]).astype(np.float32))
FILES = {"blur": {"kernel": "k.npy"}, "radon": {"angles": list(TURN)}, "cone": {"vectors": "vectors.npy", "volume": [20, 24, 24]}}
for name, entries in FILES.items():
    bench.path(f"{name}.json").write_text(json.dumps({"operator": name, "measurement": f"{name}.npy", **entries}))
DRAWN = {"deblur": ("--size", 128), "tomo2d": ("--size", 128, "--angles", 20), "tomo3d": ("--size", 24, "--angles", 8)}
JOBS = {**{name: ("--problem", bench.path(f"{name}.json")) for name in FILES}, **{name: ("--problem", name, *words) for name, words in DRAWN.items()},
        "volume": ("--problem", "tomo3d", *DRAWN["tomo3d"], "--prior", "volume"), "whole": ("--problem", "deblur", "--size", 128, "--tile", "whole"),
        "saved": ("--problem", "deblur", "--size", 128, "--save-measurement", bench.path("m.npy"), "--side-by-side", bench.path("s.png"))}
for name, words in JOBS.items():
    job, refused = ("reconstruct", out, *words, "--iterations", 1, "--quiet"), None
    for limit in ("1M", "44M"):
        result = bench.run(*job, "--memory", limit)
        named = re.findall(r"--memory (\d+[KMG])", result.err)
        if not bench.check(result.status == 1 and len(named) == 2 and f"--memory {limit} is too little" in result.err, f"{name}, {limit}: {result}"):
            continue
        planned = bench.run("plan", *job, "--memory", limit)
        bench.check(planned.status == 1 and planned.err == result.err, f"{name}, {limit}: a plan says the same: {planned}")
        if named[1] != refused:
            back = bench.run(*job, "--memory", named[1])
            bench.check(back.status == 0 and out.exists(), f"{name}: {named[1]} does: {back}")
        refused = named[1]
        out.unlink(missing_ok=True)
bench.finish()
