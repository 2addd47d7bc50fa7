"""Settings as people write them, turned into the library's numbers."""
import numbers

from ._library import HALO_AUTO, HALO_EXACT, SIGMA_AUTO, TILE_WHOLE
from .errors import OptionError

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def memory(value):
    """None, a number of bytes, or text such as "512M", as the program's --memory takes it."""
    if value is None:
        return 0
    try:
        if isinstance(value, str):
            unit = _UNITS.get(value[-1:].upper(), 1)
            value = int(float(value[:-1] if unit > 1 else value) * unit)
        value = int(value)
        if not 0 < value < 1 << 64:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"memory {value!r}: give bytes, or text such as \"512M\" or \"1.5G\"") from None
    return value


def tile(value):
    if value in (None, "auto"):
        return 0, 0
    if value == "whole":
        return TILE_WHOLE, TILE_WHOLE
    if isinstance(value, numbers.Integral) and value > 0:
        return value, value
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, numbers.Integral) and v > 0 for v in value):
        return value
    raise OptionError(f"tile {value!r}: give \"auto\", \"whole\", a number of pixels or (height, width)")


def halo(value):
    if value in (None, "auto", "exact"):
        return HALO_EXACT if value == "exact" else HALO_AUTO
    if isinstance(value, numbers.Integral) and value >= 0:
        return value
    raise OptionError(f"halo {value!r}: give \"auto\", \"exact\" or a number of pixels")


def value_range(value):
    """The samples that mean 0 and 1; None: 0 and 0, by the element type."""
    if value is None:
        return 0.0, 0.0
    try:
        low, high = map(float, value)
        if low < high:
            return low, high
    except (TypeError, ValueError):
        pass
    raise OptionError(f"range {value!r}: give the two samples that mean 0 and 1, the smaller first")


def file_range(value):
    """The library's kind of range (tess_range), and the two samples."""
    if value is None or value == "auto":
        return 0, 0.0, 0.0
    return (1, 0.0, 0.0) if isinstance(value, str) and value == "type" else (2, *value_range(value))


def sigma(value):
    """None and "auto" are estimated; text such as "25/255" is divided; what has one element, such as a tensor, is taken for it."""
    if value is None or isinstance(value, str) and value == "auto":
        return SIGMA_AUTO
    try:
        if isinstance(value, str):
            above, _, below = value.partition("/")
            level = float(above) / float(below or 1)
        else:
            level = float(value)
        if 0 <= level < float("inf"):
            return level
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError):
        pass
    raise OptionError(f"sigma {value!r}: give one number from 0 on, on the [0,1] scale, or \"auto\"")
