"""Chooses the pipeline that docs/detection.md recommends, on implants; then --real says what it does with the true masks.

    python3 bench/studies/detect_study.py build/tessera DATA/hsi [--draws 3] [--real]

The scenes of DATA/hsi get targets that are not theirs, and no mask is read: the choice must not see the truth that is reported. A target
has 1 to 100 pixels (evenly by logarithm), an ellipse or rectangle, turned, up to three times as long as wide, with mixed pixels at its
edge. It has the material of a pixel of another scene: that spectrum (the mean of the nine pixels most like it, so without most of the
noise) divided by the mean of its scene, resampled to the bands, times the mean of this scene, which keeps the light and the air of the
place. It replaces the same share, 0.1 to 1, of the material of every pixel (its part in the first 30 components); the rest, which is mostly
noise of the sensor, stays, and its brightness varies by 5 % from pixel to pixel. Fourteen targets a draw. Draws come from a counter (Philox: draw, scene, target), so any of
them can be made alone. The true anomalies of the scenes stay where they are and count as background, for every pipeline alike.

The table has the mean area under the ROC curve over scenes and draws, the worst difference from global RX of a scene's mean, and each scene.
"""
import argparse
import functools
import json
import pathlib
import subprocess
import tempfile

import numpy as np

TARGETS, RANK, ALIKE = 14, 30, 9
WHITE = {"kind": "pca", "components": 0, "whiten": True, "eps": 0}


def local(eps, inner, outer, components=0):
    return [{**WHITE, "components": components}, {"kind": "rx", "over": "local", "eps": eps, "inner": inner, "outer": outer}]


def components(count):
    return [{"kind": "pca", "components": count}, {"kind": "rx", "eps": 0}]


CANDIDATES = {
    "rx": [{"kind": "rx", "eps": 0}],
    "rx of 50 components": components(50),
    "rx of 20 components": components(20),
    "min-max, 9/25, eps 1e-6": [{"kind": "minmax"}, {"kind": "rx", "over": "local", "eps": 1e-6, "inner": 9, "outer": 25}],
    "white 30, 11/25, eps 0.5": local(0.5, 11, 25, 30),
    "white, 11/25, eps 0.5": local(0.5, 11, 25),
    "white, 11/25, eps 5": local(5, 11, 25),
    "white, 21/41, eps 0.5": local(0.5, 21, 41),
    "white, 21/41, eps 1.5": local(1.5, 21, 41),
    "white, 9/51, eps 1.5": local(1.5, 9, 51),
    "white, 15/51, eps 0.4": local(0.4, 15, 51),
    "white, 15/51, eps 1.5": local(1.5, 15, 51),
    "white, 15/51, eps 4": local(4, 15, 51),
    "white, 25/51, eps 1.5": local(1.5, 25, 51),
    "white, 15/75, eps 1.5": local(1.5, 15, 75),
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


def resample(spectrum, bands):
    return np.interp(np.linspace(0, len(spectrum) - 1, bands), np.arange(len(spectrum)), spectrum)


class Scenes:
    def __init__(self, folder):
        self.folder = folder
        self.names = sorted(p.stem for p in folder.glob("*.npy") if not p.stem.endswith("_mask"))

    @functools.cache
    def cube(self, name):
        return np.load(self.folder / f"{name}.npy")

    @functools.cache
    def parts(self, name):
        """Mean, first components and their values for all pixels."""
        pixels = self.cube(name).astype(float).reshape(-1, self.cube(name).shape[-1])
        mean = pixels.mean(0)
        vectors = np.linalg.eigh((pixels - mean).T @ (pixels - mean))[1][:, ::-1][:, :RANK]
        return mean, vectors, (pixels - mean) @ vectors

    def material(self, name, pixel):
        mean, vectors, values = self.parts(name)
        alike = np.argpartition(((values - values[pixel]) ** 2).sum(1), ALIKE)[:ALIKE]
        return mean + vectors @ values[alike].mean(0)

    def implant(self, name, draw):
        """The scene with targets, and where they are."""
        here, cube = self.names.index(name), self.cube(name)
        height, width, bands = cube.shape
        mean, vectors, values = self.parts(name)
        image, signal = cube.astype(float), (mean + values @ vectors.T).reshape(cube.shape)
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
            light = self.parts(donor)[0]
            ratio = self.material(donor, rng.integers(len(self.parts(donor)[2]))) / np.maximum(light, 0.01 * light.mean())
            spectra = resample(ratio, bands) * mean * rng.normal(1, 0.05, (n, n, 1))
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
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--real", action="store_true", help="no implants: the named pipelines with the true masks")
    options = parser.parse_args()
    scenes = Scenes(options.data)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for scene in scenes.names:
            if options.real:
                for pipeline in ("rx", "rx-local", "lad"):
                    found.setdefault(pipeline, {})[scene] = [
                        score(options.program, options.data / f"{scene}.npy", options.data / f"{scene}_mask.npy", pipeline, folder)]
                continue
            for draw in range(1, options.draws + 1):
                image, truth = scenes.implant(scene, draw)
                np.save(folder / "cube.npy", image)
                np.save(folder / "truth.npy", truth)
                for pipeline, nodes in CANDIDATES.items():
                    found.setdefault(pipeline, {}).setdefault(scene, []).append(
                        score(options.program, folder / "cube.npy", folder / "truth.npy", nodes, folder))
    table(scenes.names, found)


if __name__ == "__main__":
    main()
