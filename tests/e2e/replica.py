"""The published plug-and-play loop in NumPy; the caller passes a gradient and a denoiser. Used by the tests (which run the
network through `tessera denoise`) and by bench/peers/check_reconstruct.py (everything in PyTorch)."""
import math

import numpy as np


def psnr(x, truth, peak=1.0):
    """Saturates at 80 dB; the range counts from 0."""
    return -10 * math.log10(np.mean((np.float64(x) - truth) ** 2) / peak**2 + 1e-8)


def conjugate_gradients(normal, right, iterations=50, tolerance=1e-4, shift=1e-8):
    """(A^T A + shift I) x = A^T y from zero; the start that is called pseudo-inverse."""
    def dot(a, b):
        return float(np.vdot(np.float64(a), np.float64(b)))

    x, r = np.zeros_like(right), right.copy()
    p, square = r.copy(), dot(r, r)
    first = square
    for _ in range(iterations):
        if math.sqrt(square / first) <= tolerance:
            break
        q = normal(p) + shift * p
        step = square / dot(p, q)
        x, r = x + step * p, r - step * q
        square, before = dot(r, r), square
        p = r + square / before * p
    return x


def fitted(x, low=0.0, high=1.0):
    """Scaled to the peak, then clamped."""
    return np.clip(x * (high / x.max()), low, high)


def qualities(start, gradient, denoise, truth, step, iterations, relax=0.0, low=0.0, high=1.0):
    """PSNR after each iteration: gradient step, denoiser, relaxation, clamp."""
    x, found = np.float32(start), []
    pull = step * relax
    for _ in range(iterations):
        z = np.float32(x - np.float32(step) * np.float32(gradient(x)))
        d = denoise(z)
        x = d if relax == 0 else (z + np.float32(pull) * d) / np.float32(1 + pull)
        x = np.clip(x, low, high).astype(np.float32)
        found.append(psnr(x, truth, high))
    return found
