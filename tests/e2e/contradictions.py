"""contradictions.py PROGRAM: blurs of one picture that contradict each other, as kernels in the wrong order and frames that are not aligned do. A note
names them; blurs that agree have none, whatever their noise, range and boundary."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(4)
HEIGHT, WIDTH, REACH = 96, 112, 4
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
across, down = np.exp(-u * u / 8 - v * v), np.exp(-u * u - v * v / 8)
disc, diagonal = np.clip(3 - np.hypot(v, u), 0, 1), np.clip(1.5 - np.abs(u - v) / 1.4, 0, 1) * (np.hypot(v, u) < 4.5)
across, down, disc, diagonal = (k / k.sum() for k in (across, down, disc, diagonal))
y, x = np.mgrid[:HEIGHT + 2 * REACH, :WIDTH + 2 * REACH]
gray = 90 + 40 * np.sin(x / 9) * np.cos(y / 6) + 60 * (np.hypot(y - 50, x - 40) < 22) - 40 * (np.abs(y - x - 20) < 6) + 50 * ((x // 6 + y // 8) % 2) * (x > 70)
colours = np.stack([gray, 0.8 * gray + 20, 220 - 0.7 * gray], -1)


def blurred(picture, kernel, circular=False):
    side = range(2 * REACH + 1)
    if circular:
        picture = np.pad(picture[REACH:-REACH, REACH:-REACH], ((REACH, REACH), (REACH, REACH)) + ((0, 0),) * (picture.ndim - 2), mode="wrap")
    return sum(kernel[i, j] * picture[2 * REACH - i:2 * REACH - i + HEIGHT, 2 * REACH - j:2 * REACH - j + WIDTH] for i in side for j in side)


def solve(frames, kernels, *args, kind="u1", **entries):
    """The record's part, and what was said."""
    stack = np.concatenate(frames)
    np.save(bench.path("y.npy"), np.clip(np.rint(stack), 0, 255).astype("u1") if kind == "u1" else stack.astype(kind))
    names = [f"k{i}.npy" for i in range(len(kernels))]
    for name, kernel in zip(names, kernels):
        np.save(bench.path(name), np.ascontiguousarray(kernel))
    blurs = {"kernels": names} if len(names) > 1 else {"kernel": names[0]}
    bench.path("p.json").write_text(json.dumps({"operator": "blur", **blurs, "measurement": "y.npy", **entries}))
    record = bench.path("r.json")
    record.unlink(missing_ok=True)
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", record, "--iterations", "2", *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, ""
    return json.loads(record.read_text())["reconstruct"], result.err


def noisy(frames, *levels):
    return [frame + level * random.normal(size=frame.shape) for frame, level in zip(frames, levels * len(frames))]


def agree(name, *args, **entries):
    own, said = solve(*args, **entries)
    bench.check(own and "contradiction" not in own and "contradict" not in said, f"{name}: {own.get('contradiction')} {own.get('contradicting')} {said}")


def contradict(name, which, *args, **entries):
    own, said = solve(*args, **entries)
    bench.check(own.get("contradicting") == which and own.get("contradiction", 0) > 3 and said.count("contradict") == 1 and f"({'k%d.npy' % which[0]})" in said,
                f"{name}: {own.get('contradiction')} {own.get('contradicting')}, not {which}: {said}")


two = (across, down)
right = noisy([blurred(gray, k) for k in two], 2)
agree("two blurs", right, two)
agree("their noise given", right, two, noise=2)
agree("a noise that is given too low", right, two, noise=0.5)
contradict("kernels in the wrong order", [0, 1], right, two[::-1])
contradict("the same, noise given", [0, 1], right, two[::-1], noise=2)
contradict("the same with little memory", [0, 1], right, two[::-1], "--memory", "64M")
contradict("a frame that is shifted", [0, 1], [right[0], np.roll(right[1], 3, 1)], two)
agree("one frame alone", right[:1], two[:1])
agree("one frame alone with a wrong kernel, which nothing shows", right[:1], two[1:], noise=30)

four = (across, down, disc, diagonal)
of_four = noisy([blurred(gray, k) for k in four], 2)
agree("four blurs", of_four, four)
contradict("four blurs, the third shifted", [2], [*of_four[:2], np.roll(of_four[2], 1, 0), of_four[3]], four)
contradict("four blurs, two kernels swapped", [1, 3], of_four, (across, diagonal, disc, down))

in_colour = noisy([blurred(colours, k, True) for k in four[1:]], 2)
agree("colours, circular", in_colour, four[1:], boundary="circular")
contradict("colours, circular, the last kernel mirrored", [2], in_colour, (down, disc, diagonal[:, ::-1]), boundary="circular")
agree("different noise, one level given", noisy([blurred(gray, k) for k in two], 1, 5), two, noise=1)
uneven = 1 + 0.02 * (x / WIDTH - 0.5)[REACH:-REACH, REACH:-REACH]
agree("uneven light", [right[0] * uneven, right[1]], two)
moved = gray + 0.15 * np.gradient(gray, axis=1)
agree("almost aligned", [right[0], blurred(moved, down) + right[1] - blurred(gray, down)], two)
bright = [np.clip(2 * frame, 0, 255) for frame in right]
agree("highlights that are cut off", bright, two)
agree("highlights that are cut off and kept", bright, two, saturated=False)
holes = [frame.copy() for frame in right]
holes[0][30:36, 20:50] = np.nan
holes[1][50, 10:100] = np.nan
agree("missing values", holes, two, kind="f4")
contradict("missing values, kernels in the wrong order", [0, 1], holes, two[::-1], kind="f4")

bench.finish()
