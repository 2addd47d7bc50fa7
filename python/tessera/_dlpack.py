"""Reads the DLPack capsules that array libraries exchange memory by: where an array lies, its type, shape and strides.

Layouts: dlpack.h, versions 0.8 and 1.x. A capsule that nobody has taken over calls its deleter when it is collected, so
it is enough to keep it while the memory is used.
"""
import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

HOST, CARD = (1, 3), (2, 13)  # plain and pinned memory; memory of a card, managed or not
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


def _capsule(array, **stream):
    try:
        return array.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # a producer from before 1.0
        return array.__dlpack__(**stream)


def read(array, **stream):
    """(data, name of the element type, shape, strides in elements, writable, capsule to keep)"""
    capsule = _capsule(array, **stream)
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise BufferError(f"DLPack version {versioned.major}: version 1 is known here")
        tensor, writable = versioned.tensor, not versioned.flags & _READ_ONLY
    else:
        tensor, writable = _Tensor.from_address(_pointer(capsule, b"dltensor")), True
    shape = tuple(tensor.shape[:tensor.ndim])
    if tensor.strides:
        strides = tuple(tensor.strides[:tensor.ndim])
    else:
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
    name = f"{_CODES.get(tensor.code, 'type')}{tensor.bits}" + (f"x{tensor.lanes}" if tensor.lanes != 1 else "")
    return (tensor.data or 0) + tensor.byte_offset, name, shape, tuple(strides), writable, capsule
