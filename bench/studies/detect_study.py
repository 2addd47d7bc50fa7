"""Chooses the pipeline that docs/detection.md recommends, on implants; then --real says what it does with the true masks.

    python3 bench/studies/detect_study.py build/tessera DATA/hsi [--draws 6] [--only trim] [--real]

The scenes of DATA/hsi get targets that are not theirs, and no mask is read: the choice must not see the truth that is reported. A target
has 1 to 100 pixels (evenly by logarithm), an ellipse or rectangle, turned, up to three times as long as wide, with mixed pixels at its
edge. Its material is that of an object of another scene: of a pixel among the 5 % that differ most from the mean of the 25 x 25 pixels
around them. Every pixel of the target has the spectrum of one of the twelve pixels there that are most like that one, without the noise (30
components), divided by the mean of that scene, resampled to the bands, times the mean of this scene, which keeps the light and the air
of the place. It replaces a share of 0.1 to 1 (the same for a target, less at its edge) of the material of each pixel; the noise of the sensor
stays. Five targets a draw: about 1 % of the pixels, as in public scenes with masks. Draws come from a counter (Philox: draw, scene, target), so any of them can be made alone. The true anomalies
of the scenes stay where they are and count as background, for every pipeline alike.

The rule: of the pipelines that lose to global RX on no scene, those within 0.002 of the highest mean, and of these the one with the fewest
passes (then the highest mean).

The true masks were looked at after each of these forms of the study, and not used to choose between pipelines of one form:
1. Material of any pixel of another scene, as the mean of the pixels like it; 14 targets. RX over windows won (white, 15/51, eps 1.5), and lost to
   global RX with the true masks: grass and tarmac of elsewhere are no anomalies as planes and roofs are.
2. Material of objects, 14 targets. "trim 1.5, 3 times" won; with the true masks 0.019 above global RX in the mean, 0.0105 below it on
   one scene. The targets were 2 to 5 % of the pixels, several times as many as anomalies are, which favours strong trimming.
3. The form above. "trim 2, 6 times" won: rx-trimmed.

The table has the mean area under the ROC curve over scenes and draws, the worst difference from global RX of a scene's mean, and each scene.
"""
import argparse
import functools
import json
import pathlib
import subprocess
import tempfile

import numpy as np

TARGETS, RANK, ALIKE, AROUND, OBJECTS = 5, 30, 12, 25, 0.05
WHITE = {"kind": "pca", "components": 0, "whiten": True, "eps": 0}


def local(eps, inner, outer, components=0):
    return [{**WHITE, "components": components}, {"kind": "rx", "over": "local", "eps": eps, "inner": inner, "outer": outer}]


def components(count):
    return [{"kind": "pca", "components": count}, {"kind": "rx", "eps": 0}]


def trimmed(trim, trims):
    return [{"kind": "rx", "eps": 0, "trim": trim, "trims": trims}]


CANDIDATES = {
    "rx": [{"kind": "rx", "eps": 0}],
    "lad": [{"kind": "minmax"}, {"kind": "lad"}],
    "rx of 50 components": components(50),
    "rx of 20 components": components(20),
    "white, 15/51, eps 1.5": local(1.5, 15, 51),
    "white, 21/41, eps 0.5": local(0.5, 21, 41),
    **{f"trim {t}, {n} times": trimmed(t, n) for t in (1.25, 1.5, 2, 3) for n in (1, 3, 6)},
}


def random(*words):
    return np.random.Generator(np.random.Philox(key=words[0], counter=[*words[1:], *[0] * (5 - len(words))]))


def shape(rng, pixels):
    """Shares of the pixels of a small square that a turned ellipse or rectangle covers, by 4 x 4 points each."""
    length = np.sqrt(pixels * rng.uniform(1, 3))
    sides = np.array([length, pixels / length])
    ellipse = rng.random() < 0.5
    if ellipse:
        sides *= np.sqrt(4 / np.pi)
    turn, size = rng.uniform(0, np.pi), int(np.ceil(sides[0])) + 3
    size += 1 - size % 2
    at = (np.arange(4 * size) + 0.5) / 4 - size / 2
    down, right = rng.uniform(-0.5, 0.5, 2)
    y, x = at[:, None] - down, at[None] - right
    u, v = (x * np.cos(turn) + y * np.sin(turn)) / (sides[0] / 2), (y * np.cos(turn) - x * np.sin(turn)) / (sides[1] / 2)
    inside = u * u + v * v <= 1 if ellipse else (abs(u) <= 1) & (abs(v) <= 1)
    return inside.reshape(size, 4, size, 4).mean((1, 3))


def resample(spectra, bands):
    at = np.linspace(0, spectra.shape[-1] - 1, bands)
    low = np.minimum(at.astype(int), spectra.shape[-1] - 2)
    return spectra[..., low] * (1 - (at - low)) + spectra[..., low + 1] * (at - low)


class Scenes:
    def __init__(self, folder):
        self.folder = folder
        self.names = sorted(p.stem for p in folder.glob("*.npy") if not p.stem.endswith("_mask"))

    @functools.cache
    def cube(self, name):
        return np.load(self.folder / f"{name}.npy")

    @functools.cache
    def parts(self, name):
        """Mean, spectra without noise (pixels x bands), and the components of all pixels."""
        pixels = self.cube(name).astype(float).reshape(-1, self.cube(name).shape[-1])
        mean = pixels.mean(0)
        vectors = np.linalg.eigh((pixels - mean).T @ (pixels - mean))[1][:, ::-1][:, :RANK]
        values = (pixels - mean) @ vectors
        return mean, mean + values @ vectors.T, values

    @functools.cache
    def reflectance(self, name):
        """Spectra divided by the mean of the scene, and which pixels are of objects."""
        mean, signal, _ = self.parts(name)
        ratio = signal / np.maximum(mean, 0.01 * mean.mean())
        image = ratio.reshape(self.cube(name).shape)
        half = AROUND // 2
        sums = np.pad(image, ((half + 1, half), (half + 1, half), (0, 0)), "reflect").cumsum(0).cumsum(1)
        means = (sums[AROUND:, AROUND:] - sums[:-AROUND, AROUND:] - sums[AROUND:, :-AROUND] + sums[:-AROUND, :-AROUND]) / AROUND ** 2
        far = ((image - means) ** 2).mean(-1).ravel()
        return ratio, np.flatnonzero(far >= np.quantile(far, 1 - OBJECTS))

    def material(self, name, rng, size):
        """Spectra of pixels that are like one pixel of an object."""
        (_, _, values), (ratio, objects) = self.parts(name), self.reflectance(name)
        one = objects[rng.integers(len(objects))]
        alike = np.argpartition(((values - values[one]) ** 2).sum(1), ALIKE)[:ALIKE]
        return ratio[alike[rng.integers(ALIKE, size=(size, size))]]

    def implant(self, name, draw):
        """The scene with targets, and where they are."""
        here, cube = self.names.index(name), self.cube(name)
        height, width, bands = cube.shape
        mean, signal, _ = self.parts(name)
        image, signal = cube.astype(float), signal.reshape(cube.shape)
        truth, taken = np.zeros((height, width), np.uint8), np.zeros((height, width), bool)
        for target in range(TARGETS):
            rng = random(draw, here, target)
            pixels, fraction = np.exp(rng.uniform(0, np.log(100))), rng.uniform(0.1, 1)
            for _ in range(100):
                share = shape(rng, pixels)
                n = len(share)
                y, x = rng.integers(0, height - n + 1), rng.integers(0, width - n + 1)
                if not taken[max(0, y - 2):y + n + 2, max(0, x - 2):x + n + 2].any():
                    break
            else:
                continue
            donor = self.names[(here + rng.integers(1, len(self.names))) % len(self.names)]
            spectra = resample(self.material(donor, rng, n), bands) * mean
            where = np.s_[y:y + n, x:x + n]
            image[where] += (fraction * share)[..., None] * (spectra - signal[where])
            truth[where] |= share >= 0.5 if (share >= 0.5).any() else share == share.max()
            taken[where] = True
        if np.issubdtype(cube.dtype, np.integer):
            limits = np.iinfo(cube.dtype)
            image = np.clip(np.rint(image), limits.min, limits.max)
        return image.astype(cube.dtype), truth


def score(program, cube, truth, pipeline, folder):
    """AUROC of a pipeline: a name, or nodes."""
    name = pipeline
    if not isinstance(pipeline, str):
        bands = np.load(cube, mmap_mode="r").shape[-1]
        nodes = [{**n, "components": min(n["components"], bands)} if n["kind"] == "pca" else n for n in pipeline]
        name = folder / "graph.json"
        name.write_text(json.dumps({"nodes": nodes}))
    done = subprocess.run([str(a) for a in (program, "detect", cube, folder / "scores.npy", "--pipeline", name, "--truth", truth, "--json", "-",
                                            "--quiet")], check=True, capture_output=True)
    return json.loads(done.stdout)["quality"]["auroc"]


def table(names, found):
    """found: {pipeline: {scene: [AUROC of each draw]}}"""
    print(f"{'':26} {'mean':>7} {'worst':>8}  " + " ".join(f"{n[-8:]:>8}" for n in names))
    for pipeline, by_scene in found.items():
        means = np.array([np.mean(by_scene[n]) for n in names])
        worst = min(means - [np.mean(found["rx"][n]) for n in names])
        print(f"{pipeline:26} {means.mean():7.4f} {worst:+8.4f}  " + " ".join(f"{m:8.4f}" for m in means), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--only", default="", help="candidates with this word in their names, and rx")
    parser.add_argument("--real", action="store_true", help="no implants: the named pipelines with the true masks")
    options = parser.parse_args()
    scenes = Scenes(options.data)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for scene in scenes.names:
            if options.real:
                for pipeline in ("rx", "rx-trimmed", "rx-local", "lad"):
                    found.setdefault(pipeline, {})[scene] = [
                        score(options.program, options.data / f"{scene}.npy", options.data / f"{scene}_mask.npy", pipeline, folder)]
                continue
            for draw in range(1, options.draws + 1):
                image, truth = scenes.implant(scene, draw)
                np.save(folder / "cube.npy", image)
                np.save(folder / "truth.npy", truth)
                for pipeline, nodes in CANDIDATES.items():
                    if pipeline != "rx" and options.only not in pipeline:
                        continue
                    found.setdefault(pipeline, {}).setdefault(scene, []).append(
                        score(options.program, folder / "cube.npy", folder / "truth.npy", nodes, folder))
    table(scenes.names, found)


if __name__ == "__main__":
    main()
