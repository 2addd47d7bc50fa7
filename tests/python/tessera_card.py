"""Arrays on an NVIDIA card, made with the CUDA driver through ctypes and exported through DLPack, for test_card.py."""
import ctypes
from ctypes import c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint64, c_void_p

import numpy as np


def open_driver():
    """The driver, or None where there is no card."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = c_int()
    return driver if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value else None


class Card:
    def __init__(self, driver):
        self.driver = driver
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: status {status}")

    def new_stream(self):
        stream = c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)  # does not wait for the default stream
        return stream

    def wait(self, stream):
        self.call("cuStreamSynchronize", c_void_p(stream))

    def used(self):
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def empty(self, shape):
        """A dense float32 array; its memory lives as long as the process."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), c_size_t(int(np.prod(shape)) * 4))
        strides = np.empty(shape, np.float32).strides
        return CardArray(self, address.value, tuple(shape), tuple(step // 4 for step in strides))


class _Managed(ctypes.Structure):
    """DLManagedTensor"""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64), ("context", c_void_p), ("deleter", c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]


class CardArray:
    def __init__(self, card, address, shape, strides):
        self.card, self.address, self.shape, self.strides = card, address, shape, strides

    def upload(self, array, stream):
        self.kept = np.ascontiguousarray(array, np.float32)
        self.card.call("cuMemcpyHtoDAsync_v2", c_uint64(self.address), c_void_p(self.kept.ctypes.data), c_size_t(self.kept.nbytes),
                       c_void_p(stream))

    def download(self, stream):
        result = np.empty(self.shape, np.float32)
        self.card.call("cuMemcpyDtoHAsync_v2", c_void_p(result.ctypes.data), c_uint64(self.address), c_size_t(result.nbytes),
                       c_void_p(stream))
        return result

    def part(self, *slices):
        starts, shape, strides = zip(*[(cut.indices(size)[0], len(range(*cut.indices(size))), step * cut.indices(size)[2])
                                       for cut, size, step in zip(slices, self.shape, self.strides)])
        offset = sum(start * step for start, step in zip(starts, self.strides))
        return CardArray(self.card, self.address + 4 * offset, shape, strides)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        count = len(self.shape)
        numbers = c_int64 * count
        self.parts = numbers(*self.shape), numbers(*self.strides)
        shape, strides = (ctypes.cast(part, ctypes.POINTER(c_int64)) for part in self.parts)
        self.managed = _Managed(self.address, 2, 0, count, 2, 32, 1, shape, strides, 0, None, None)
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor", None)
