"""Measures the error of Winograd's F(4x4, 3x3) in fp32 for several sets of points, and that of the direct sum.

    python bench/studies/winograd_points.py

Uses 64 channels, rectified normal input and Kaiming weights; errors are relative to the largest (and to the root mean square)
result in fp64.
"""
import numpy as np

POINTS = {"0, +-1, +-2 (textbook)": (0, 1, -1, 2, -2), "0, +-1, 1/2, -2": (0, 1, -1, 0.5, -2),
          "0, +-sqrt(1/2), +-sqrt(2) (ours)": (0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5))}


def transforms(points, side=4, taps=3):
    """Cook and Toom: output, kernel and input transforms for these points and infinity."""
    size = side + taps - 1
    out, kernel, data = np.zeros((side, size)), np.zeros((size, taps)), np.zeros((size, size))
    for i, a in enumerate(points):
        others = [b for b in points if b != a]
        out[:, i] = [a**j for j in range(side)]
        kernel[i] = [a**j / np.prod([a - b for b in others]) for j in range(taps)]
        data[i, :size - 1] = np.poly(others)[::-1]
    out[-1, -1] = kernel[-1, -1] = 1
    data[-1] = np.poly(points)[::-1]
    return out, kernel, data


def both_axes(matrix, values):
    return np.einsum("ij,tcjk,lk->tcil", matrix, values, matrix, dtype=np.float32, casting="same_kind")


def main():
    draw = np.random.default_rng(0)
    image = np.maximum(draw.standard_normal((200, 64, 6, 6)), 0).astype(np.float32)
    weights = (draw.standard_normal((8, 64, 3, 3)) * (2 / 576) ** 0.5).astype(np.float32)
    exact, direct = np.zeros((200, 8, 4, 4)), np.zeros((200, 8, 4, 4), np.float32)
    for y in range(3):
        for x in range(3):
            window = image[:, :, y:y + 4, x:x + 4]
            exact += np.einsum("tchw,oc->tohw", window.astype(np.float64), weights[:, :, y, x].astype(np.float64))
            for c in range(64):
                direct += window[:, c, None] * weights[None, :, c, y, x, None, None]

    def tell(name, result):
        error = np.abs(result - exact)
        print(f"{name:34s} largest {error.max() / np.abs(exact).max():.2e}  rms "
              f"{np.sqrt((error**2).mean() / (exact**2).mean()):.2e}")

    tell("direct", direct)
    for name, points in POINTS.items():
        out, kernel, data = (matrix.astype(np.float32) for matrix in transforms(points))
        v, u, m = both_axes(data, image), both_axes(kernel, weights), np.zeros((200, 8, 6, 6), np.float32)
        for c in range(64):
            m += v[:, c, None] * u[None, :, c]
        tell(name, both_axes(out, m))


main()
