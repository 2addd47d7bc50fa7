"""Files, through the library's job: what `tessera denoise` does, from Python."""
import ctypes
import os

from . import _settings
from ._library import DenoiseSettings, check, create_context, lib, take_record

_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_double)


def denoise_file(input, output, sigma=None, *, model=None, device="auto", precision="auto", threads=0, memory=None, tile=None,
                 halo="auto", batch=0, axes=None, range=None, strength=1.0, truth=None, overwrite=False, progress=None):
    """Denoises a file, or a folder of images, into another, and returns the record of `tessera denoise --json` as a dict.

    range: the two samples that mean 0 and 1; "type": integers by their maximum, floats as they are; None: as the program
    chooses it, for floats beyond [0,1] from the data.
    progress(done, total, seconds) is called often; a false answer other than None stops the job. An exception in it, also
    Ctrl-C, stops the job too and is raised here.
    """
    raised = []

    def report(_, done, total, seconds):
        try:
            answer = progress(done, total, seconds) if progress else None
            return answer is None or bool(answer)
        except BaseException as problem:
            raised.append(problem)
            return False

    callback = _PROGRESS(report)
    settings = DenoiseSettings()
    lib.tess_denoise_settings_init(settings)
    common = settings.common
    common.device, common.precision, common.threads = device.encode(), precision.encode(), threads
    common.memory_limit = _settings.memory(memory)
    common.progress = ctypes.cast(callback, ctypes.c_void_p)
    settings.input, settings.output = os.fsencode(input), os.fsencode(output)
    settings.model = None if model is None else os.fsencode(model)
    settings.truth = None if truth is None else os.fsencode(truth)
    settings.axes = None if axes is None else axes.encode()
    settings.sigma, settings.strength, settings.overwrite = _settings.sigma(sigma), strength, overwrite
    settings.range, settings.range_low, settings.range_high = _settings.file_range(range)
    settings.tile_height, settings.tile_width = _settings.tile(tile)
    settings.halo, settings.batch = _settings.halo(halo), batch
    context, record = create_context(), ctypes.c_void_p()
    try:
        status = lib.tess_denoise(context, settings, ctypes.byref(record))
        result = take_record(record)
        if raised:
            raise raised[0]
        check(context, status)
        return result
    finally:
        lib.tess_context_destroy(context)
