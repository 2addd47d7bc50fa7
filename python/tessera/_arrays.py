"""Arrays of the caller as the library sees them: a pointer, an element type, sizes and strides. Nothing is copied.

NumPy is not imported here: it is looked up among the modules that the caller has loaded, so that `import tessera` is quick
and tensors need no NumPy.
"""
import collections
import functools
import sys

from . import _dlpack
from .errors import OptionError

ELEMENTS = {"uint8": 1, "uint16": 2, "float16": 3, "float32": 4, "float64": 5}
_NAMES = {element: name for name, element in ELEMENTS.items()}
_NUMPY = {"|u1": 1, "<u2": 2, "<f2": 3, "<f4": 4, "<f8": 5}
_BYTES = {1: 1, 2: 2, 3: 2, 4: 4, 5: 8}
_LEGACY_STREAM = 1  # CUDA's default stream by its handle; 0 means "no stream given" to the library


class View:
    """Where an array lies. `card`: None, or the index of the card; `keep`: what must live as long as the pointer."""
    __slots__ = ("data", "element", "shape", "strides", "card", "stream", "writable", "keep")


# sizes: depth, height, width, channels; places: the axis of each, or None where the array has no such axis.
Layout = collections.namedtuple("Layout", "shape axes sizes places")


def element_of(dtype):
    """Of "float32", numpy.float32, numpy.dtype("f4") or torch.float32."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    try:
        return ELEMENTS[name.rpartition(".")[2]]
    except KeyError:
        raise OptionError(f"element type {name}: give one of {', '.join(ELEMENTS)}") from None


def name_of(element):
    return _NAMES[element]


def root_module(array):
    return type(array).__module__.partition(".")[0]


def view(array, stream=None):
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(array, numpy.ma.MaskedArray):
        if array.mask.any():
            raise OptionError(f"a masked array, of which {int(array.mask.sum())} element(s) are masked: fill them first "
                              "(x.filled), or denoise a file, in which they are holes")
        array = array.data
    if numpy and isinstance(array, numpy.ndarray):
        return _view_numpy(array)
    if hasattr(array, "__dlpack__"):
        return _view_dlpack(array, stream)
    if hasattr(array, "__array__") or hasattr(array, "__array_interface__"):
        import numpy
        return _view_numpy(numpy.asarray(array))
    raise TypeError(f"{type(array).__name__}: give a NumPy array, or an object with __dlpack__ such as a tensor")


def _view_numpy(array):
    result = View()
    dtype = array.dtype
    result.element = _NUMPY.get(dtype.str)
    if result.element is None:
        raise OptionError(f"element type {dtype}: give one of {', '.join(ELEMENTS)}, in this machine's byte order")
    size = dtype.itemsize
    flags = array.flags
    result.writable = flags.writeable
    if not flags.aligned or size > 1 and any(step % size for step in array.strides):
        array = array.copy()  # a field of packed records, say: its strides are no multiples of its element
        result.writable = False
    result.data = array.__array_interface__["data"][0]
    result.shape = array.shape
    result.strides = array.strides if size == 1 else tuple([step // size for step in array.strides])
    result.card = result.stream = None
    result.keep = array
    return result


def _view_dlpack(array, stream):
    result = View()
    kind, index = array.__dlpack_device__()
    if kind in _dlpack.CARD:
        result.card, result.stream = index, stream or _current_stream(array, index)
        read = _dlpack.read(array, stream=result.stream)
    elif kind in _dlpack.HOST:
        result.card = result.stream = None
        read = _dlpack.read(array)
    else:
        raise OptionError(f"an array on a device of DLPack kind {int(kind)}: give one on the host or on an NVIDIA card")
    result.data, name, result.shape, result.strides, result.writable, result.keep = read
    result.element = element_of(name)
    return result


def _current_stream(array, index):
    """The stream that the array's own library is working on in this thread."""
    root = root_module(array)
    if root == "torch":
        return sys.modules["torch"].cuda.current_stream(index).cuda_stream or _LEGACY_STREAM
    if root == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr or _LEGACY_STREAM
    return _LEGACY_STREAM


def stream_handle(stream):
    """Of an int, torch.cuda.Stream or cupy.cuda.Stream."""
    if stream is None:
        return None
    handle = getattr(stream, "cuda_stream", None)
    handle = getattr(stream, "ptr", stream) if handle is None else handle
    if not isinstance(handle, int) or handle < 0:
        raise TypeError(f"stream {stream!r}: give the handle of a CUDA stream, or a stream of torch or cupy")
    return handle or _LEGACY_STREAM


def channels_first(array):
    return root_module(array) == "torch"


@functools.lru_cache(maxsize=256)
def layout(shape, axes, channels_first=False):
    """Which axis is which. Without `axes`: channels last and at most 4, or first for tensors of torch."""
    if axes is None:
        axes = _usual_axes(shape, channels_first)
    if len(axes) != len(shape) or len(set(axes)) != len(axes) or not set("HW") <= set(axes) <= set("NDHWC") or \
            set("ND") <= set(axes):
        raise OptionError(f"axes {axes!r} for shape {shape}: one letter for each axis, H and W, and C, D or N where there are "
                          "channels, slices or several images")
    places = tuple(next((i for i, axis in enumerate(axes) if axis in letters), None) for letters in ("ND", "H", "W", "C"))
    sizes = tuple(1 if place is None else shape[place] for place in places)
    return Layout(shape, axes, sizes, places)


def _usual_axes(shape, channels_first):
    usual = {2: "HW", 3: "CHW", 4: "NCHW"} if channels_first else {2: "HW", 3: "HWC", 4: "NHWC"}
    axes = usual.get(len(shape))
    if axes is None or not channels_first and len(shape) > 2 and shape[-1] > 4:
        raise OptionError(f"shape {shape}: name its axes, e.g. axes=\"CHW\", \"NCHW\", \"DHW\" (slices) or \"HWC\"")
    return axes


def fill(image, view, places):
    """Pointer and strides into a struct that already has the sizes."""
    strides = view.strides
    depth, height, width, channel = places
    image.data = view.data
    image.stride_height, image.stride_width = strides[height], strides[width]
    if depth is not None:
        image.stride_depth = strides[depth]
    if channel is not None:
        image.stride_channel = strides[channel]


def empty_like(array):
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(array, numpy.ndarray):
        return numpy.empty_like(array, subok=False)
    module = sys.modules.get(root_module(array))
    if hasattr(array, "__dlpack__"):
        if not hasattr(module, "empty_like"):
            raise OptionError(f"no way known to make a {type(array).__name__} for the result: give out=")
        return module.empty_like(array)
    return numpy.empty_like(numpy.asarray(array))


def _span(view):
    first = last = view.data
    for size, step in zip(view.shape, view.strides):
        reach = (size - 1) * step * _BYTES[view.element]
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first, last + _BYTES[view.element]


def check_output(source, target):
    """An output may be the input itself, but not a part of it or a view in another order."""
    if (target.shape, target.element, target.card) != (source.shape, source.element, source.card):
        raise OptionError(f"out is {describe(target)}, x is {describe(source)}: they must be alike")
    if not target.writable:
        raise OptionError("out cannot be written to: it is read-only, or its elements are not aligned")
    if (target.data, target.strides) != (source.data, source.strides):
        (first, last), (low, high) = _span(source), _span(target)
        if first < high and low < last:
            raise OptionError("x and out overlap: give one array as both, or two that share no memory")


def describe(view):
    return f"{name_of(view.element)} {view.shape} on {'the host' if view.card is None else f'card {view.card}'}"
