"""A model on a device, and its plans for images of given shapes.

A `Denoiser` has its own context, so two of them may run in two threads at once. One lock a denoiser makes it safe to share
as well: calls from several threads then wait for each other. The lock can be entered twice by one thread, because Python
may collect a plan at any time, also while the lock is held.
"""
import collections
import ctypes
import os
import threading

from . import _arrays, _settings
from ._library import (Bytes, DenoiserSettings, DeviceSettings, Image, ModelSettings, check, create_context, lib, sized,
                       take_record)
from .errors import OptionError


class _Session:
    """Context, device and model, and what was planned with them; released together, the plans first."""

    def __init__(self, model, device, precision, threads, inflate):
        self.lock = threading.RLock()
        self.plans = set()
        self.device, self.model = ctypes.c_void_p(), ctypes.c_void_p()
        self.context = create_context()
        try:
            settings = sized(DeviceSettings, device=device.encode(), threads=threads)
            check(self.context, lib.tess_device_open(self.context, settings, ctypes.byref(self.device)))
            settings = sized(ModelSettings, name=os.fsencode(model), precision=precision.encode(),
                             inflate=inflate.encode() if inflate else None)
            check(self.context, lib.tess_model_load(self.device, settings, ctypes.byref(self.model)))
        except BaseException:
            self.close()
            raise
        self.device_name = lib.tess_device_name(self.device).decode()

    def require_open(self):
        if not self.context:
            raise OptionError("the denoiser is closed")

    def add_plan(self, settings):
        plan = ctypes.c_void_p()
        with self.lock:
            self.require_open()
            check(self.context, lib.tess_denoiser_plan(self.model, settings, ctypes.byref(plan)))
            self.plans.add(plan.value)
        return plan.value

    def release_plan(self, plan):
        with self.lock:
            if plan in self.plans:
                self.plans.remove(plan)
                lib.tess_denoiser_release(plan)

    def close(self):
        with self.lock:
            while self.plans:
                lib.tess_denoiser_release(self.plans.pop())
            lib.tess_model_release(self.model)
            lib.tess_device_close(self.device)
            lib.tess_context_destroy(self.context)
            self.model = self.device = self.context = None

    def __del__(self):
        if getattr(self, "context", None):
            self.close()


class Plan:
    """How images of one shape and element type will be denoised, and what that takes. Made by Denoiser.plan."""

    def __init__(self, session, layout, element, on_card, settings):
        self._session, self._layout, self._element, self._on_card = session, layout, element, on_card
        self._handle = session.add_plan(settings)
        depth, height, width, channels = layout.sizes
        # The strides stay 1 where the array has no such axis.
        self._in, self._out = (sized(Image, element=element, on_device=on_card, depth=depth, height=height, width=width,
                                     channels=channels, stride_depth=1, stride_channel=1) for _ in range(2))
        self._references = ctypes.byref(self._in), ctypes.byref(self._out)

    def __del__(self):
        if getattr(self, "_handle", None):
            self._session.release_plan(self._handle)

    def __repr__(self):
        return f"<tessera.Plan {self.shape} {self.dtype}>"

    shape = property(lambda self: self._layout.shape)
    axes = property(lambda self: self._layout.axes)
    dtype = property(lambda self: _arrays.name_of(self._element), doc='Name of the element type, e.g. "float32".')

    @property
    def bytes(self):
        """What the plan will hold, as a dict: weights, activations, workspace, io and their total, and host."""
        result = sized(Bytes)
        with self._session.lock:
            self._session.require_open()
            lib.tess_denoiser_bytes(self._handle, result)
        return {name: getattr(result, name) for name, _ in Bytes._fields_ if name != "size"}

    @property
    def seconds(self):
        """How long a run is expected to take."""
        with self._session.lock:
            self._session.require_open()
            return lib.tess_denoiser_seconds(self._handle)

    def describe(self):
        """Tile, halo, batch, bytes, seconds and why, as a dict."""
        record = ctypes.c_void_p()
        with self._session.lock:
            self._session.require_open()
            check(self._session.context, lib.tess_denoiser_describe(self._handle, ctypes.byref(record)))
        return take_record(record)

    def prepare(self):
        """Allocates what the plan says; the first run does it otherwise."""
        with self._session.lock:
            self._session.require_open()
            check(self._session.context, lib.tess_denoiser_prepare(self._handle))
        return self

    def run(self, x, sigma=None, out=None, stream=None):
        """As Denoiser.run, for arrays of this plan's shape and type."""
        stream = _arrays.stream_handle(stream)
        source = _arrays.view(x, stream)
        if source.shape != self.shape or source.element != self._element or (source.card is not None) != self._on_card:
            where = "on a card" if self._on_card else "on the host"
            raise OptionError(f"the plan is for {self.dtype} {self.shape} {where}, x is {_arrays.describe(source)}")
        return self._run(x, source, sigma, out, stream)

    def _run(self, x, source, sigma, out, stream):
        sigma = _settings.sigma(sigma)
        if source.card is not None:
            _check_card(self._session, source.card)
        if out is None:
            out = _arrays.empty_like(x)
            target = _arrays.view(out, source.stream)
        else:
            target = _arrays.view(out, source.stream)
            _arrays.check_output(source, target)
        places = self._layout.places
        session = self._session
        with session.lock:
            session.require_open()
            _arrays.fill(self._in, source, places)
            _arrays.fill(self._out, target, places)
            check(session.context, lib.tess_denoiser_run(self._handle, *self._references, sigma, source.stream or stream))
        return out


def _check_card(session, card):
    wanted = f"cuda:{card}"
    if session.device_name.partition(" ")[0] != wanted:
        raise OptionError(f"x is on card {card}, the denoiser on {session.device_name}: use Denoiser(device=\"{wanted}\")")


class Denoiser:
    """A model loaded on a device: `denoiser(x, sigma)` takes the noise out of x.

    model      bundled name, or a weight file (safetensors, pth)
    device     "auto" (the first card, else the CPU), "cpu", "cuda", "cuda:K"
    precision  "auto", "fp32", "tf32", "fp16", "bf16"
    threads    of the CPU; 0: all cores
    memory     limit on the device that computes, for each plan: bytes, or text such as "512M"; None: what is free
    range      the two samples that mean 0 and 1; None: integers by their type's maximum, floats as they are
    tile, halo, batch   as the program's options of these names; by default the plan chooses
    axes       of the arrays, e.g. "HWC", "CHW", "NCHW", "DHW"; None: (H,W), (H,W,C), (N,H,W,C), and (C,H,W), (N,C,H,W)
               for tensors of torch
    inflate    "halves" or "level": makes a 2-D network 3-D, for volumes
    plans      how many plans are kept, each with its memory; None: 4, or 1 with a memory limit
    """

    def __init__(self, model="drunet-color-small", device="auto", precision="auto", threads=0, memory=None, *, range=None,
                 tile=None, halo="auto", batch=0, axes=None, inflate=None, plans=None):
        self._memory = _settings.memory(memory)
        self._range = _settings.value_range(range)
        self._tile, self._halo, self._batch = _settings.tile(tile), _settings.halo(halo), batch
        self._axes = axes
        self._kept = plans or (1 if self._memory else 4)
        self._plans = collections.OrderedDict()
        self._session = _Session(model, device, precision, threads, inflate)
        self.model = str(model)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()

    def __repr__(self):
        return f"<tessera.Denoiser {self.model} on {self.device if self._session.context else 'a closed device'}>"

    def close(self):
        """Releases the model, its plans and the device; a second call does nothing."""
        with self._session.lock:
            self._plans.clear()
            if self._session.context:
                self._session.close()

    device = property(lambda self: self._session.device_name, doc='Name of the device, e.g. "cuda:0 NVIDIA H200".')

    @property
    def channels(self):
        """Of the images that the model takes; a model of 1 channel takes any number, each by itself."""
        with self._session.lock:
            self._session.require_open()
            return lib.tess_model_channels(self._session.model)

    @property
    def takes_sigma(self):
        """False: the model finds the noise level itself, and sigma changes nothing."""
        with self._session.lock:
            self._session.require_open()
            return lib.tess_model_takes_sigma(self._session.model)

    def plan(self, shape, dtype="float32", axes=None, on_card=False):
        """The plan for arrays of this shape; kept, so that a run with such an array uses it."""
        layout = _arrays.layout(tuple(shape), axes or self._axes)
        return self._plan(layout, _arrays.element_of(dtype), bool(on_card))

    def run(self, x, sigma=None, out=None, axes=None, stream=None):
        """Denoises x into `out`, or a new array of the same kind, and returns it.

        sigma: of the noise, on the [0,1] scale; None or "auto": estimated, for arrays on the host. stream: for arrays on a
        card; None: the one that torch or cupy is working on. The call then only enqueues the work.
        """
        stream = _arrays.stream_handle(stream)
        source = _arrays.view(x, stream)
        layout = _arrays.layout(source.shape, axes or self._axes, _arrays.channels_first(x))
        if source.card is not None:
            _check_card(self._session, source.card)
        return self._plan(layout, source.element, source.card is not None)._run(x, source, sigma, out, stream)

    __call__ = run

    def _plan(self, layout, element, on_card):
        key = layout, element, on_card
        with self._session.lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
            while len(self._plans) >= self._kept:  # before the new one is made, so that both are never held
                self._plans.popitem(last=False)
            plan = self._plans[key] = Plan(self._session, layout, element, on_card, self._plan_settings(layout, element, on_card))
            return plan

    def _plan_settings(self, layout, element, on_card):
        depth, height, width, channels = layout.sizes
        return sized(DenoiserSettings, depth=depth, height=height, width=width, channels=channels, element=element,
                     on_device=on_card, memory_limit=self._memory, range_low=self._range[0], range_high=self._range[1],
                     tile_height=self._tile[0], tile_width=self._tile[1], halo=self._halo, batch=self._batch,
                     separate="N" in layout.axes)
