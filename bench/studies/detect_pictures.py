"""Pictures of a detection: false colours, scores and found anomalies side by side (PNG), and the ROC curves (SVG).

    python3 bench/studies/detect_pictures.py build/tessera DATA/hsi/muufl_gulfport docs/pictures

Makes detect.png and detect_roc.svg in the last folder from NAME.npy and NAME_mask.npy. Everything in them comes from the program: the
colours are its overlay with a decider that marks nothing, scores its output on a scale of logarithms, and the curves are those of its
records. The scene of docs/ is a part of the MUUFL Gulfport campus (Gader, Zare, Close, Aitken, Tuell, University of Florida,
REP-2013-570, 2013; MIT licence).
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

TIMES, GAP = 3, 8  # pixels of the picture for one of the scene; between the panels
NOTHING = {"kind": "two_stage", "threshold": 1e300}
RAMP = np.array([[13, 8, 70], [90, 20, 130], [180, 50, 110], [240, 110, 60], [250, 220, 100]], float)
CURVES = {"rx": "#888888", "rx-trimmed": "#c03020"}


def png(path, image):
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = image.reshape(height, -1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def run(program, scene, folder, pipeline, *more):
    command = [program, "detect", f"{scene}.npy", folder / "scores.npy", "--pipeline", pipeline, "--truth", f"{scene}_mask.npy",
               "--json", folder / "record.json", "--quiet", *more]
    subprocess.run([str(c) for c in command], check=True)
    return json.loads((folder / "record.json").read_text()), np.load(folder / "scores.npy")


def overlay(program, scene, folder, pipeline):
    run(program, scene, folder, pipeline, "--overlay", folder / "o.png")
    return read_png(folder / "o.png")


def read_png(path):
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    rows = np.zeros((height, 3 * width), np.uint8)
    for y in range(height):
        line = raw[y, 1:]
        if raw[y, 0] == 1:  # the difference from the left
            line = np.cumsum(line.reshape(width, 3), axis=0, dtype=np.uint8).reshape(-1)
        rows[y] = line + rows[y - 1] if raw[y, 0] == 2 and y else line
        if raw[y, 0] > 2:
            raise SystemExit(f"{path}: filter {raw[y, 0]} is not read here")
    return rows.reshape(height, width, 3)


def shade(scores):
    """Dark for the 1 % lowest, bright for the 0.1 % highest scores, by logarithm."""
    logs = np.log(np.maximum(scores, 1e-9))
    low, high = np.quantile(logs, [0.01, 0.999])
    at = np.clip((logs - low) / (high - low), 0, 1) * (len(RAMP) - 1)
    part = np.minimum(at.astype(int), len(RAMP) - 2)
    share = (at - part)[..., None]
    return np.rint(RAMP[part] * (1 - share) + RAMP[part + 1] * share).astype(np.uint8)


def roc(path, records):
    """False alarms from 10^-4 to 1 on a scale of logarithms."""
    def x(rate):
        return 60 + 340 * (np.log10(max(rate, 1e-4)) + 4) / 4

    def y(recall):
        return 20 + 300 * (1 - recall)
    text = ['<svg xmlns="http://www.w3.org/2000/svg" width="420" height="370" font-family="sans-serif" font-size="12">',
            '<rect width="420" height="370" fill="white"/>']
    for power in range(-4, 1):
        at = x(10.0 ** power)
        text += [f'<line x1="{at:.1f}" y1="20" x2="{at:.1f}" y2="320" stroke="#ddd"/>',
                 f'<text x="{at:.1f}" y="336" text-anchor="middle">{10.0 ** power:g}</text>']
    for tenth in range(0, 11, 2):
        text += [f'<line x1="60" y1="{y(tenth / 10):.1f}" x2="400" y2="{y(tenth / 10):.1f}" stroke="#ddd"/>',
                 f'<text x="54" y="{y(tenth / 10) + 4:.1f}" text-anchor="end">{tenth / 10:g}</text>']
    for line, (name, record) in enumerate(records.items()):
        points = " ".join(f"{x(a):.1f},{y(r):.1f}" for a, r in record["quality"]["roc"])
        text += [f'<polyline points="{points}" fill="none" stroke="{CURVES[name]}" stroke-width="2"/>',
                 f'<text x="392" y="{290 + 18 * line}" text-anchor="end" fill="{CURVES[name]}">{name}: AUROC '
                 f'{record["quality"]["auroc"]:.4f}</text>']
    text += ['<text x="230" y="358" text-anchor="middle">rate of false alarms</text>',
             '<text x="16" y="170" text-anchor="middle" transform="rotate(-90 16 170)">recall</text>', "</svg>"]
    path.write_text("\n".join(text) + "\n")


def main():
    program, scene, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        records = {p: run(program, scene, folder, p)[0] for p in CURVES}
        best = records["rx-trimmed"]["detect"]["graph"]
        plain = folder / "plain.json"
        plain.write_text(json.dumps({"nodes": [{"kind": "rx", "eps": 0}, NOTHING]}))
        panels = [overlay(program, scene, folder, plain), shade(run(program, scene, folder, "rx-trimmed")[1]),
                  overlay(program, scene, folder, "rx-trimmed")]
    large = [np.repeat(np.repeat(p, TIMES, 0), TIMES, 1) for p in panels]
    gap = np.full((large[0].shape[0], GAP, 3), 255, np.uint8)
    png(out / "detect.png", np.concatenate([large[0], gap, large[1], gap, large[2]], 1))
    roc(out / "detect_roc.svg", records)
    print("pipeline:", " -> ".join(n["kind"] for n in best["nodes"]))
    for name, record in records.items():
        print(f"{name}: AUROC {record['quality']['auroc']:.4f}, average precision {record['quality']['average_precision']:.4f}")


main()
