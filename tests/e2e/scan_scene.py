"""Scans of disks and balls, computed exactly: line integrals of disks in 2-D, of balls in cone beams, and the images they belong to."""
from support import np


def image(size, disks):
    """disks: (value, x, y, radius)."""
    at = (np.arange(size * 4) + 0.5) / 4 - size / 2
    total = sum(value * ((at[None] - x) ** 2 + (at[:, None] - y) ** 2 <= r ** 2) for value, x, y, r in disks)
    return total.reshape(size, 4, size, 4).mean((1, 3))


def sinogram(angles, columns, disks, centre=None):
    """Averaged over a column; `centre`: the column of the axis."""
    at = (np.arange(columns * 4) + 0.5) / 4 - 0.5 - ((columns - 1) / 2 if centre is None else centre)
    turn = np.deg2rad(angles)[:, None]
    total = sum(value * 2 * np.sqrt(np.maximum(r ** 2 - (at[None] - x * np.cos(turn) + y * np.sin(turn)) ** 2, 0)) for value, x, y, r in disks)
    return total.reshape(len(angles), columns, 4).mean(2)


def solid(sides, balls):
    """balls: (value, x, y, z, radius)."""
    z, y, x = np.meshgrid(*[(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in sides], indexing="ij")
    total = sum(value * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 <= r * r) for value, a, b, c, r in balls)
    return total.reshape(sides[0], 3, sides[1], 3, sides[2], 3).mean((1, 3, 5))


def orbit(degrees, shift=0):
    """Cone-beam vectors on a circle; `shift` moves the detector along its rows, in pixels."""
    turns = np.deg2rad(np.asarray(degrees, float))
    zero, pitch = 0 * turns, 1.3
    u = pitch * np.stack([np.cos(turns), np.sin(turns), zero], 1)
    source, middle = (r * np.stack([np.sin(turns), -np.cos(turns), zero], 1) for r in (60, -30))
    return np.concatenate([source, middle + shift * u, u, np.tile([0, 0, pitch], (len(turns), 1))], 1)


def views(vectors, rows, columns, balls):
    """Averaged over a pixel."""
    out = []
    right, down = [(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in (columns, rows)]
    for source, middle, u, v in vectors.reshape(-1, 4, 3):
        along = middle + right[None, :, None] * u + down[:, None, None] * v - source
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        total = 0
        for value, *ball, r in balls:
            to = np.array(ball) - source
            near = (to * along).sum(-1)
            total = total + value * 2 * np.sqrt(np.maximum(r * r - ((to * to).sum() - near ** 2), 0))
        out.append(total.reshape(rows, 3, columns, 3).mean((1, 3)))
    return np.array(out)


def parallel(degrees, incline=0.0):
    """Vectors of parallel rays that turn about z, inclined to the slices by an angle in radians."""
    turns = np.deg2rad(np.asarray(degrees, float))
    zero = 0 * turns
    ray = np.stack([-np.sin(turns) * np.cos(incline), np.cos(turns) * np.cos(incline), zero + np.sin(incline)], 1)
    u = np.stack([np.cos(turns), np.sin(turns), zero], 1)
    return np.concatenate([ray, 0 * u, u, np.cross(ray, u)], 1)


def parallel_views(vectors, rows, columns, balls):
    """Averaged over a pixel."""
    out = []
    right, down = [(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in (columns, rows)]
    for ray, middle, u, v in vectors.reshape(-1, 4, 3):
        at = middle + right[None, :, None] * u + down[:, None, None] * v
        total = 0
        for value, *ball, r in balls:
            to = np.array(ball) - at
            total = total + value * 2 * np.sqrt(np.maximum(r * r - ((to * to).sum(-1) - (to @ ray) ** 2), 0))
        out.append(total.reshape(rows, 3, columns, 3).mean((1, 3)))
    return np.array(out)
