"""Functions that the end-to-end tests share: run the program in fresh processes, make images and weights without other libraries.

A script makes one `Bench` (a temporary folder, the program, a private TESSERA_CACHE), calls
`bench.check`, and ends with `bench.finish()`: status 1 if a check failed. Status 77 means skipped.

Weights are drawn by splitmix64 on a counter, not by numpy's generators, so that the networks behind the committed
reference outputs (tests/data, made by bench/peers/make_dumps.py) are the same with every version of numpy.
"""
import collections
import contextlib
import io
import json
import math
import os
import pathlib
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import types
import zipfile
import zlib

try:
    import numpy as np
except ImportError:
    print("skipped: these tests need numpy (Debian: python3-numpy)")
    sys.exit(77)

MIB = 1 << 20
SKIP = 77
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
# Sanitizers end a process with 99, which no check takes for an answer of the program. Looking for leaks at the end of
# every process takes seconds on some kernels, so that only runs with LEAKS as their env do it.
LEAKS = {"ASAN_OPTIONS": "exitcode=99:detect_leaks=1"}
SANITIZERS = {"ASAN_OPTIONS": "exitcode=99:detect_leaks=0", "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


# --- the program --------------------------------------------------------------------------------------------------

class Result:
    """One run: exit status (negative: a signal), texts, and the largest VmHWM seen from outside when watched."""

    def __init__(self, command, status, out, err, peak):
        self.command, self.status, self.out, self.err, self.peak = command, status, out, err, peak

    @property
    def lines(self):
        return [line for line in self.err.splitlines() if line.strip()]

    @property
    def record(self):
        return json.loads(self.out)

    def __str__(self):
        return f"status {self.status}, stderr {self.err.strip()[:400]!r}: {' '.join(self.command[1:])}"


def high_water(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Bench:
    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-e2e-"))
        self.cache = self.folder / "cache"
        self.failures = 0
        # Workspaces grow with the threads, so limits that fit a job here must not depend on this machine's cores.
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid() % max(len(cores) - 1, 1)
        os.sched_setaffinity(0, cores[first:first + 2])

    def path(self, name):
        return self.folder / name

    def start(self, *args, env=None, **popen):
        surroundings = {**os.environ, **SANITIZERS, "TESSERA_CACHE": str(self.cache), "LC_ALL": "C", **(env or {})}
        return subprocess.Popen([self.program, *map(str, args)], env=surroundings, stdin=subprocess.DEVNULL, **popen)

    def run(self, *args, env=None, timeout=1800, watch=False, **popen):
        """Runs to the end; a run past `timeout` is killed and shows as status -9."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(*args, env=env, **{"stdout": out, "stderr": err, **popen})
            peak, deadline = 0, time.monotonic() + timeout
            while process.poll() is None:
                if watch:
                    peak = max(peak, high_water(process.pid))
                if time.monotonic() > deadline:
                    process.kill()
                try:
                    process.wait(0.002 if watch else 1)
                except subprocess.TimeoutExpired:
                    pass
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        return Result([self.program, *map(str, args)], process.returncode, *texts, peak)

    def record(self, *args, **more):
        """The record of a run that must succeed; None after a failed check."""
        result = self.run(*args, "--json", "-", "--quiet", **more)
        if result.status != 0:
            self.check(False, f"runs: {result}")
            return None
        return result.record

    def has_bf16(self):
        record = self.record("info")
        return bool(record and record["info"]["devices"][0]["bf16"])

    def has_gdal(self):
        record = self.record("info")
        return bool(record and record["info"]["libraries"]["gdal"])

    def need_device(self, device):
        """Skips without that device, unless TESSERA_REQUIRE_GPU is set."""
        result = self.run("info", "--device", device, "--quiet")
        if result.status and not os.environ.get("TESSERA_REQUIRE_GPU"):
            shutil.rmtree(self.folder, ignore_errors=True)
            skip(result.err.strip())

    def check(self, good, text):
        """What holds is told in short, so that the end of a log has room for what does not."""
        if not good:
            self.failures += 1
        print(text[:100] if good else f"FAILED: {text}", flush=True)
        return good

    def check_refused(self, result, status, *words):
        """The exit status, exactly one line on standard error, and that the line names what is wrong."""
        lines = [line for line in result.lines if not line.startswith("tessera: note: ")]
        good = result.status == status and len(lines) == 1 and all(word in result.err for word in words)
        return self.check(good, f"status {status}, one line with {', '.join(words)}: {result}")

    def finish(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.failures:
            print(f"{self.failures} check(s) did not hold")
        sys.exit(1 if self.failures else 0)


def leftovers(folder):
    return sorted(p.name for p in pathlib.Path(folder).rglob("*") if ".tmp" in p.name)


# --- images -------------------------------------------------------------------------------------------------------

def picture(height, width, channels=3, seed=1):
    """Smooth shapes, an edge and some noise, in [0,1], float32; (H,W) when channels is 1."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64) / 97
    planes = []
    for c in range(channels):
        plane = 0.5 + 0.2 * np.sin(3 * x + c) * np.cos(2 * y - c) + 0.15 * (np.sin(x * y + c) > 0)
        planes.append(plane + 0.05 * draw(seed + 71 * c, (height, width)))
    image = np.clip(np.stack(planes, -1), 0, 1).astype(np.float32)
    return image[..., 0] if channels == 1 else image


def to_integers(image, dtype):
    return np.round(np.asarray(image, np.float64) * np.iinfo(dtype).max).astype(dtype)


COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, image, level=1):
    """uint8 or uint16, (H,W) or (H,W,C) with C from 1 to 4: gray, gray+alpha, RGB, RGBA."""
    image = image[..., None] if image.ndim == 2 else image
    height, width, channels = image.shape
    rows = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    raw = np.zeros((height, rows.shape[1] + 1), np.uint8)
    raw[:, 1:] = rows
    header = struct.pack(">IIBBBBB", width, height, 8 * image.dtype.itemsize, COLOUR_TYPES[channels], 0, 0, 0)
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) +
                                   png_chunk(b"IDAT", zlib.compress(raw.tobytes(), level)) + png_chunk(b"IEND", b""))


def read_png(path):
    """What Tessera and write_png write: 8 or 16 bits, not interlaced, filters none, left and up."""
    data, at, packed = pathlib.Path(path).read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    channels = {v: k for k, v in COLOUR_TYPES.items()}[colour]
    step = channels * bits // 8
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * step)
    rows = np.zeros((height, width * step), np.uint8)
    for y in range(height):
        if raw[y, 0] > 2:
            raise ValueError(f"{path}: filter {raw[y, 0]} is not read here")
        row = raw[y, 1:]
        if raw[y, 0] == 1:
            row = np.cumsum(row.reshape(width, step), axis=0, dtype=np.uint8).reshape(-1)
        rows[y] = row + rows[y - 1] if raw[y, 0] == 2 and y else row
    image = rows.view(">u2").astype(np.uint16) if bits == 16 else rows
    return image.reshape((height, width, channels) if channels > 1 else (height, width))


def psnr(a, b, peak=1.0):
    error = np.mean((np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2)
    return math.inf if error == 0 else 10 * math.log10(peak * peak / error)


# --- weights ------------------------------------------------------------------------------------------------------

def draw(seed, shape):
    """Uniform in [-1, 1), float32."""
    with np.errstate(over="ignore"):
        z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


class Weights(dict):
    """Name -> float32 array, filled layer by layer with the variance that keeps activations alive behind ReLUs."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def put(self, name, shape, scale, shift=0.0):
        self.seed += 1
        self[name] = np.float32(scale) * draw(self.seed, shape) + np.float32(shift)

    def conv(self, name, out, inside, kernel, bias, gain=1.0):
        self.put(f"{name}.weight", (out, inside, kernel, kernel), gain * math.sqrt(6 / (inside * kernel * kernel)))
        if bias:
            self.put(f"{name}.bias", (out,), 0.1)

    def norm(self, name, width):
        self.put(f"{name}.weight", (width,), 0.3, 1.0)
        self.put(f"{name}.bias", (width,), 0.2)
        self.put(f"{name}.running_mean", (width,), 0.3)
        self.put(f"{name}.running_var", (width,), 0.5, 1.0)


def drunet(channels=3, widths=(32, 32, 64, 64), blocks=1, seed=1):
    w, (a, b, c, d) = Weights(seed * 1000), widths

    def stage(name, width, first):
        for i in range(first, first + blocks):
            w.conv(f"{name}.{i}.res.0", width, width, 3, False)
            w.conv(f"{name}.{i}.res.2", width, width, 3, False, 0.3)

    w.conv("m_head", a, channels + 1, 3, False)
    for name, wide, next_wide in (("m_down1", a, b), ("m_down2", b, c), ("m_down3", c, d)):
        stage(name, wide, 0)
        w.conv(f"{name}.{blocks}", next_wide, wide, 2, False, 0.6)
    stage("m_body", d, 0)
    for name, wide, next_wide in (("m_up3", d, c), ("m_up2", c, b), ("m_up1", b, a)):
        w.put(f"{name}.0.weight", (wide, next_wide, 2, 2), 0.3 * math.sqrt(6 / wide))
        stage(name, next_wide, 1)
    w.conv("m_tail", channels, a, 3, False, 0.5)
    return w


def unet(channels=3, widths=(32, 32, 64, 64), seed=1):
    w, (a, b, c, d) = Weights(seed * 1000), widths

    def block(name, inside, out, places=(0, 3)):
        for place, width in zip(places, (inside, out)):
            w.conv(f"{name}.{place}", out, width, 3, True)
            w.norm(f"{name}.{place + 1}", out)

    for name, inside, out in (("Conv1", channels, a), ("Conv2", a, b), ("Conv3", b, c), ("Conv4", c, d)):
        block(name, inside, out)
    for scale, inside, out in ((4, d, c), (3, c, b), (2, b, a)):
        block(f"Up{scale}", inside, out, (1,))
        block(f"Up_conv{scale}", 2 * out, out)
    w.conv("Conv_1x1", channels, a, 1, True, 1.2)
    return w


def dncnn(channels=3, depth=5, width=32, seed=1):
    w = Weights(seed * 1000)
    w.conv("in_conv", width, channels, 3, True)
    for i in range(depth - 2):
        w.conv(f"conv_list.{i}", width, width, 3, True)
    w.conv("out_conv", channels, width, 3, True, 1.2)
    return w


NETWORKS = {"drunet": drunet, "unet": unet, "dncnn": dncnn}


def write_safetensors(path, weights, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, array in weights.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in weights.values():
            file.write(np.ascontiguousarray(array, "<f4").tobytes())
    return path


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        kinds = {"F32": "<f4", "F16": "<f2"}
        if entry["dtype"] not in kinds:
            raise ValueError(f"{path}: {entry['dtype']} is not read here")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).astype(np.float32).reshape(entry["shape"])
    return arrays


def read_metadata(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]]).get("__metadata__")


def write_config(path, keys, changes):
    """Writes a configuration as JSON: `keys`, in which a change a__b sets b of a, and None removes a key. Returns its path."""
    keys = json.loads(json.dumps(keys))
    for key, value in changes.items():
        *outer, last = key.split("__")
        place = keys
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
        if value is None:
            del place[last]
    path.write_text(json.dumps(keys))
    return path


@contextlib.contextmanager
def torch_names():
    """pickle writes a global only when it can import it: stand-ins for the few of PyTorch's that a state dict names."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    torch.DoubleStorage = type("DoubleStorage", (), {"__module__": "torch"})
    utils._rebuild_tensor_v2 = lambda *parts: parts
    utils._rebuild_tensor_v2.__module__ = "torch._utils"
    utils._rebuild_tensor_v2.__name__ = utils._rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield torch, utils
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})


def checkpoint_pickle(tree):
    """(the pickle, the arrays by their storage key), as torch.save writes dicts of dicts of arrays, protocol 2."""
    arrays = {}

    class Storage:
        def __init__(self, key, array):
            self.key, self.count, self.double = key, array.size, array.dtype == np.float64

    with torch_names() as (torch, utils):
        class Tensor:
            def __init__(self, key, array):
                self.key, self.array = key, array

            def __reduce__(self):
                array = self.array
                strides = tuple(s // array.itemsize for s in array.strides)
                return utils._rebuild_tensor_v2, (Storage(self.key, array), 0, tuple(map(int, array.shape)), strides,
                                                  False, collections.OrderedDict())

        class Pickler(pickle.Pickler):
            def persistent_id(self, thing):
                if isinstance(thing, Storage):
                    return "storage", torch.DoubleStorage if thing.double else torch.FloatStorage, thing.key, "cpu", thing.count
                return None

        def tensors(value):
            if isinstance(value, dict):
                return collections.OrderedDict((key, tensors(below)) for key, below in value.items())
            if not isinstance(value, np.ndarray):
                return value
            shape, double = value.shape, value.dtype == np.float64
            key = str(len(arrays))
            arrays[key] = np.ascontiguousarray(value, "<f8" if double else "<f4").reshape(shape)
            return Tensor(key, arrays[key])

        buffer = io.BytesIO()
        Pickler(buffer, 2).dump(tensors(tree))
    return buffer.getvalue(), arrays


def write_pth(path, weights, legacy=False):
    """A checkpoint as torch.save writes it: the zip of today, or the five pickles of before 2020. Floats that are not float64
    become float32."""
    text, arrays = checkpoint_pickle(weights)
    if legacy:
        with open(path, "wb") as file:
            for thing in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True,
                                                         "type_sizes": {"short": 2, "int": 4, "long": 4}}):
                file.write(pickle.dumps(thing, 2))
            file.write(text + pickle.dumps(list(arrays), 2))
            for array in arrays.values():
                file.write(struct.pack("<q", array.size) + array.tobytes())
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("net/data.pkl", text)
        archive.writestr("net/byteorder", "little")
        for key, array in arrays.items():
            archive.writestr(f"net/data/{key}", array.tobytes())
        archive.writestr("net/version", "3\n")
    return path


def interrupt(process, number=signal.SIGINT):
    process.send_signal(number)
    return process.wait(120)
