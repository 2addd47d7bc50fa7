"""Restores images of any size with deep priors, within a memory limit: NumPy arrays, tensors, arrays on a card.

    import tessera
    with tessera.Denoiser("drunet-color-small") as denoise:
        clean = denoise(noisy, 25 / 255)

See docs/python.md. The work is done by libtessera, which the wheel carries; this package only calls it.
"""
from .denoiser import Denoiser, Plan
from .errors import (DeviceLost, Error, InputError, InternalError, Interrupted, IOFailed, OptionError, OutOfMemory,
                     OverLimit, Unsupported)
from .files import denoise_file

__version__ = "0.1.0"
__all__ = ["Denoiser", "Plan", "denoise_file", "Error", "OptionError", "InputError", "IOFailed", "OutOfMemory", "OverLimit",
           "Unsupported", "Interrupted", "DeviceLost", "InternalError"]
