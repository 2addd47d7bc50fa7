"""Finds and opens libtessera, and declares what include/tessera.h declares.

Nothing is compiled: ctypes calls the shared library, so that one wheel serves every Python 3. The layouts below repeat
those of the header; tests/python/test_layout.py compares them with what the C compiler says.
"""
import ctypes
import json
import os
import pathlib
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

from . import errors

SIGMA_AUTO = -2.0
TILE_WHOLE = -1
HALO_AUTO, HALO_EXACT = -1, -2


class Common(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("precision", c_char_p), ("threads", c_int), ("memory_limit", c_uint64),
                ("seed", c_uint64), ("progress", c_void_p), ("file", c_void_p), ("note", c_void_p),
                ("progress_user", c_void_p), ("record_file", c_char_p), ("trace_file", c_char_p)]


class DenoiseSettings(ctypes.Structure):
    _fields_ = [("common", Common), ("input", c_char_p), ("inputs", POINTER(c_char_p)), ("input_count", c_int),
                ("output", c_char_p), ("model", c_char_p), ("truth", c_char_p), ("sigma", c_double),
                ("sigma_map", c_char_p), ("add_noise", c_double), ("strength", c_double), ("range", c_int),
                ("range_low", c_double), ("range_high", c_double), ("axes", c_char_p), ("recursive", c_bool),
                ("skip_existing", c_bool), ("overwrite", c_bool), ("dither", c_bool), ("zeros_are_data", c_bool), ("tile_height", c_int64),
                ("tile_width", c_int64), ("halo", c_int64), ("batch", c_int64), ("ranks", c_int64), ("machine", c_char_p)]


class Image(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("element", c_int), ("depth", c_int64), ("height", c_int64),
                ("width", c_int64), ("channels", c_int64), ("stride_depth", c_int64), ("stride_height", c_int64),
                ("stride_width", c_int64), ("stride_channel", c_int64), ("on_device", c_bool)]


class DeviceSettings(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("threads", c_int)]


class ModelSettings(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("precision", c_char_p), ("inflate", c_char_p)]


class DenoiserSettings(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("depth", c_int64), ("height", c_int64), ("width", c_int64), ("channels", c_int64),
                ("element", c_int), ("range_low", c_double), ("range_high", c_double), ("on_device", c_bool),
                ("memory_limit", c_uint64), ("tile_height", c_int64), ("tile_width", c_int64), ("halo", c_int64),
                ("batch", c_int64), ("separate", c_bool)]


class Bytes(ctypes.Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in
                                       ("weights", "activations", "workspace", "io", "total", "host")]


def sized(struct, **members):
    """A struct that begins with its size. Not filled by its _init, which would write a newer library's larger struct."""
    return struct(size=ctypes.sizeof(struct), **members)


# The structs by their names in C, for the test that compares layouts.
STRUCTS = {"tess_common": Common, "tess_denoise_settings": DenoiseSettings, "tess_image": Image,
           "tess_device_settings": DeviceSettings, "tess_model_settings": ModelSettings,
           "tess_denoiser_settings": DenoiserSettings, "tess_bytes": Bytes}

# Records are taken as plain pointers, because ctypes would copy a char * and lose what is to be freed.
_RECORD = POINTER(c_void_p)
_FUNCTIONS = {
    "tess_version": (c_char_p, []),
    "tess_context_create": (c_int, [POINTER(c_void_p)]),
    "tess_context_destroy": (None, [c_void_p]),
    "tess_context_error": (c_char_p, [c_void_p]),
    "tess_record_free": (None, [c_void_p]),
    "tess_denoise_settings_init": (None, [POINTER(DenoiseSettings)]),
    "tess_denoise": (c_int, [c_void_p, POINTER(DenoiseSettings), _RECORD]),
    "tess_device_open": (c_int, [c_void_p, POINTER(DeviceSettings), POINTER(c_void_p)]),
    "tess_device_close": (None, [c_void_p]),
    "tess_device_name": (c_char_p, [c_void_p]),
    "tess_model_load": (c_int, [c_void_p, POINTER(ModelSettings), POINTER(c_void_p)]),
    "tess_model_release": (None, [c_void_p]),
    "tess_model_channels": (c_int64, [c_void_p]),
    "tess_model_takes_sigma": (c_bool, [c_void_p]),
    "tess_denoiser_plan": (c_int, [c_void_p, POINTER(DenoiserSettings), POINTER(c_void_p)]),
    "tess_denoiser_release": (None, [c_void_p]),
    "tess_denoiser_bytes": (None, [c_void_p, POINTER(Bytes)]),
    "tess_denoiser_seconds": (c_double, [c_void_p]),
    "tess_denoiser_describe": (c_int, [c_void_p, _RECORD]),
    "tess_denoiser_prepare": (c_int, [c_void_p]),
    "tess_denoiser_run": (c_int, [c_void_p, POINTER(Image), POINTER(Image), c_double, c_void_p]),
}

_FOLDER = pathlib.Path(__file__).resolve().parent
_VERSION = "0.1"  # major and minor: structs of jobs may differ in another


def _open():
    """TESSERA_LIBRARY, then the library that the wheel carries, then one that is installed on the system."""
    named = os.environ.get("TESSERA_LIBRARY")
    carried = _FOLDER / "lib" / "libtessera.so"
    name = named or (str(carried) if carried.exists() else f"libtessera.so.{_VERSION}")
    try:
        library = ctypes.CDLL(name)
        for function_name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, function_name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as problem:
        raise ImportError(f"tessera: no usable libtessera ({problem}); install the wheel or the library, or set "
                          "TESSERA_LIBRARY to the path of libtessera.so") from None
    version = library.tess_version().decode()
    if version.split(".")[:2] != _VERSION.split("."):
        raise ImportError(f"tessera: {name} has version {version}; this module needs {_VERSION}")
    return library


lib = _open()


def check(context, status):
    """Raises the exception of a status other than TESS_OK, with the message that the context keeps."""
    if status:
        message = lib.tess_context_error(context) if context else None
        raise errors.of_status(status, message.decode("utf-8", "replace") if message else f"status {status}")


def create_context():
    context = c_void_p()
    check(None, lib.tess_context_create(ctypes.byref(context)))
    return context


def take_record(record):
    """The record as a dict; frees the text."""
    if not record:
        return None
    try:
        return json.loads(ctypes.string_at(record))
    finally:
        lib.tess_record_free(record)
