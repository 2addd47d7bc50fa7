"""Entries of scans that are wrong or missing, as the views show: the column of the axis, the offset of the detector, angles, and light that is
taken as line integrals. Scans without a mistake get no such note. Plans say it, before the work."""
import json
import sys

import scan_scene
from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(4)
HALF, FULL = np.arange(90) * 2.0, np.arange(120) * 3.0
DISKS = [(0.02, 0, 0, 25), (0.03, 8, 5, 4), (-0.01, -9, 4, 7)]  # value, x, y, radius
ASIDE = [(0.03, 15, -6, 9), (-0.02, 17, -6, 3)]
BALLS = [(0.04, 0, 0, 0, 9), (0.05, 4, -3, 2, 2.5), (-0.03, 1, 5, 3, 2)]  # value, x, y, z, radius
FAR_BALLS = [(0.05, 8, 3, 0, 4), (0.06, -2, 7, 2, 2)]


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def sinogram(angles, centre=31.5, columns=64, disks=DISKS, noise=0.005):
    return scan_scene.sinogram(angles, columns, disks, centre) + noise * random.normal(size=(len(angles), columns))


def orbit(count, shift=0, arc=360):
    return scan_scene.orbit(np.arange(count) * arc / count, shift)


def views(vectors, balls, rows=32, columns=48):
    return scan_scene.views(vectors, rows, columns, balls) + 0.005 * random.normal(size=(len(vectors), rows, columns))


def said(command="plan", **entries):
    bench.path("problem.json").write_text(json.dumps({"measurement": "y.npy", **entries}))
    words = ["plan", "reconstruct"] if command == "plan" else ["reconstruct"]
    result = bench.run(*words, bench.path("out.npy"), "--problem", bench.path("problem.json"), *([] if command == "plan" else ["--iterations", 2]))
    bench.check(result.status == 0, f"{command}s: {result}")
    return result.err


# --- the column of the axis -------------------------------------------------------------------------------------------

for name, angles in (("half a turn", HALF), ("a full turn", FULL), ("tilts", np.arange(-60, 61, 2.0))):
    for centre in (31.5, 30, 27.5, 36):
        save("y.npy", sinogram(angles, centre).astype(np.float32))
        text = said(operator="radon", angles=list(angles))
        far = abs(centre - 31.5) > (0.3 if angles is FULL or angles is HALF else 3)  # many opposite views agree, or the spectrum of all views is sure
        bench.check(("\"auto\"" in text) == far and (not far or f"near {centre:.1f}" in text), f"{name}, axis at {centre}: {text!r}")
        text = said(operator="radon", angles=list(angles), centre=28)
        bench.check("\"auto\"" not in text, f"{name}, axis at {centre}, a centre is given: {text!r}")
for what, array in (("an object aside", sinogram(HALF, disks=ASIDE)), ("wider than the detector", sinogram(HALF, 19.5, 40)), ("the same, full turn", sinogram(FULL, 19.5, 40)),
                    ("much noise", sinogram(HALF, noise=0.3)), ("a background", sinogram(HALF) + 0.05)):
    save("y.npy", array.astype(np.float32))
    text = said(operator="radon", angles=list(FULL if len(array) == len(FULL) else HALF))
    bench.check("auto" not in text, f"{what}: {text!r}")

save("y.npy", sinogram(FULL, 31.7).astype(np.float32))
text = said("reconstruct", operator="radon", angles=list(FULL))
bench.check("\"auto\"" in text and "near 31.7" in text and "rings" not in text, f"an axis that is slightly off is no error of the columns: {text!r}")

# --- the offset of the detector ---------------------------------------------------------------------------------------

cone = {"operator": "cone", "vectors": "vectors.npy", "volume": [20, 24, 24]}
for what, is_at, taken, balls, columns, wrong in (
        ("right", orbit(60), orbit(60), BALLS, 48, ""), ("right, with an offset", orbit(60, 4), orbit(60, 4), BALLS, 48, ""),
        ("right, object aside", orbit(60), orbit(60), FAR_BALLS, 48, ""), ("right, half a turn", orbit(60, 0, 200), orbit(60, 0, 200), FAR_BALLS, 48, ""),
        ("right, half fan", orbit(60, 11), orbit(60, 11), BALLS, 30, ""), ("missed", orbit(60, 3.3), orbit(60), BALLS, 48, "3.3 columns to the left"),
        ("missed, object aside", orbit(60, -2), orbit(60), FAR_BALLS, 48, "2.0 columns to the right")):
    save("vectors.npy", taken)
    save("y.npy", views(is_at, balls, columns=columns).astype(np.float32))
    text = said("reconstruct" if wrong else "plan", **cone)
    bench.check(("the offset of the detector" in text) == bool(wrong) and wrong in text and "rings" not in text, f"detector's offset is {what}: {text!r}")

# --- the angles: views that the result does not fit -------------------------------------------------------------------

ROUND = [(0.5, 2, -1, 36), (0.3, 15, 10, 8), (-0.2, -12, 5, 6), (0.4, -5, -18, 4)]
SHELL = [(0.5, 0, 0, 40), (-0.45, 0, 0, 37), (0.1, 12, 5, 8), (0.2, -9, -14, 5)]  # most of it is symmetric about the axis
STEP = np.arange(180) * 1.0


def judged(scene, noise, factor, columns=96, **entries):
    right = scan_scene.sinogram(STEP, columns, scene)
    save("y.npy", (right + noise * right.max() * random.normal(size=right.shape) + entries.pop("errors", 0)).astype(np.float32))
    bench.path("problem.json").write_text(json.dumps({"measurement": "y.npy", "operator": "radon", "angles": list(STEP * factor), **entries}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("r.json"))
    bench.check(result.status == 0, f"reconstructs with angles times {factor}: {result}")
    record = json.loads(bench.path("r.json").read_text())
    planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    bench.check(planned == counted, f"angles times {factor}: planned {planned['total']} = counted {counted['total']}")
    return record["reconstruct"].get("misfit", 0), result.err


for name, scene in (("disks", ROUND), ("a shell", SHELL)):
    for noise in (0, 0.005, 0.03):
        misfit, text = judged(scene, noise, 1)
        bench.check(misfit == 0 and "does not fit" not in text, f"{name}, noise {noise}, right angles: {misfit}: {text!r}")
for noise in (0, 0.005, 0.01):
    for factor in (2, 0.5):
        misfit, text = judged(ROUND, noise, factor)
        bench.check(misfit > 4 and "does not fit the views" in text and "check the angles" in text and "columns have errors" not in text,
                    f"noise {noise}, angles times {factor}: {misfit}: {text!r}")
misfit, text = judged(ROUND, 0.005, 1, errors=0.5 * random.normal(size=96), rings=False)
bench.check(misfit == 0 and "does not fit" not in text, f"errors of columns that are kept: {misfit}: {text!r}")
for entries in ({}, {"size": 96}):
    misfit, text = judged(ROUND, 0.005, 1, columns=64, **entries)
    bench.check(misfit == 0 and "does not fit" not in text, f"wider than the detector, {entries}: {misfit}: {text!r}")

# --- the detector of a volume -------------------------------------------------------------------------------------------

MORE_BALLS = BALLS + [(0.03, -5, 6, -6, 3)]
AROUND = orbit(40)


def fits(what, right, measured, taken, operator="cone", volume=(16, 24, 24)):
    save("vectors.npy", taken)
    save("y.npy", measured.astype(np.float32))
    bench.path("problem.json").write_text(json.dumps({"measurement": "y.npy", "operator": operator, "vectors": "vectors.npy", "volume": volume, "rings": False}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("r.json"), "--iterations", 2)
    bench.check(result.status == 0, f"reconstructs: {result}")
    record = json.loads(bench.path("r.json").read_text())
    planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    bench.check(planned == counted, f"{what}: planned {planned['total']} = counted {counted['total']}")
    misfit = record["reconstruct"].get("misfit", 0)
    bench.check((misfit == 0) == right and ("sense of rotation, whether rows and columns" in result.err) == (not right), f"a detector that is {what}: {misfit}: {result.err!r}")


seen = views(AROUND, MORE_BALLS, 32, 32)
fits("right", True, seen, AROUND)
fits("upside down, which shows another object", True, seen[:, ::-1], AROUND)
fits("mirrored", False, seen[:, :, ::-1], AROUND)
fits("turned the other way", False, seen, AROUND[::-1])
fits("swapped", False, seen.transpose(0, 2, 1), AROUND)
rays = scan_scene.parallel(np.arange(40) * 4.5, 0.5)  # inclined, as in laminography
seen = scan_scene.parallel_views(rays, 36, 32, MORE_BALLS) + 0.005 * random.normal(size=(40, 36, 32))
fits("right, parallel rays", True, seen, rays, "parallel3d", (20, 24, 24))
fits("mirrored, parallel rays", False, seen[:, :, ::-1], rays, "parallel3d", (20, 24, 24))
fits("right, of an object that is higher than the volume", False, seen, rays, "parallel3d", (12, 24, 24))

# --- light ------------------------------------------------------------------------------------------------------------

lines = sinogram(HALF)
save("y.npy", np.exp(-lines).astype(np.float32))
text = said("reconstruct", operator="radon", angles=list(HALF))
bench.check("\"flat\": 1" in text and "wider" not in text, f"light: {text!r}")
text = said(operator="radon", angles=list(HALF), flat=1)
bench.check("transmission" not in text, f"light with \"flat\": {text!r}")
for what, array in (("line integrals", lines), ("line integrals up to 1", lines / lines.max()), ("wider than the detector", sinogram(HALF, 19.5, 40))):
    save("y.npy", array.astype(np.float32))
    text = said(operator="radon", angles=list(HALF))
    bench.check("transmission" not in text, f"{what}: {text!r}")

# --- a background -------------------------------------------------------------------------------------------------------

thick = sinogram(HALF, noise=0) * 2
for flat in (0.85, 0.95, 1, 1.05, 1.15):
    save("y.npy", random.poisson(20000 * np.exp(-thick)).astype(np.uint16))
    text = said("reconstruct", operator="radon", angles=list(HALF), flat=20000 * flat)
    told = f'"flat" is {"brighter" if flat > 1 else "darker"} than the light of the scan' in text
    bench.check(told == (flat != 1) and "wider" not in text and ("line integrals are 0" in text) == told, f"a flat of {flat}: {text!r}")
for what, array, background in (("an offset", lines + 0.1, True), ("a negative offset", lines - 0.1, True), ("nothing", lines, False), ("much noise", sinogram(HALF, noise=0.3), False),
                                ("wider than the detector", sinogram(HALF, 19.5, 40), False), ("a disk wider than the detector", sinogram(HALF, disks=[(0.02, 0, 0, 33)]), False),
                                ("light that drifts", lines + np.linspace(0, 0.2, len(HALF))[:, None], False)):
    save("y.npy", array.astype(np.float32))
    text = said("reconstruct", operator="radon", angles=list(HALF))
    bench.check(("an offset was added" in text) == background, f"{what}: {text!r}")

bench.finish()
