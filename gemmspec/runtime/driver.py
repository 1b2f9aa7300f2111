"""The CUDA driver: what a launch needs of it. The only importer of cuda-bindings, which has no types.

Everything here is per process; nothing is imported, and no device touched, before the first use.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingModuleSource=false, reportMissingImports=false

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from gemmspec.runtime.problem import ArgumentProblem, DriverProblem, LoadProblem

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_MOST_STREAMS = 32
_MAP_BYTES = 128
_NEEDED_CUDA = 12000  # tensor maps
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int


def device_of(pointer: int) -> int:
    """Return the device that an address is on. Raises `DriverProblem` where it is none of a device."""
    cuda = _driver()
    what = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(_done("cuPointerGetAttribute", cuda.cuPointerGetAttribute(what, pointer)))


def device_name(device: int) -> str:
    """Return what a device is called."""
    return _done("cuDeviceGetName", _driver().cuDeviceGetName(64, device)).split(b"\0")[0].decode()


def capability(device: int) -> tuple[int, int]:
    """Return the compute capability of a device."""
    cuda = _driver()
    attributes = cuda.CUdevice_attribute
    major, minor = (
        int(_done("cuDeviceGetAttribute", cuda.cuDeviceGetAttribute(which, device)))
        for which in (
            attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    return major, minor


def multiprocessors(device: int) -> int:
    """Return how many multiprocessors a device has."""
    cuda = _driver()
    which = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    return int(_done("cuDeviceGetAttribute", cuda.cuDeviceGetAttribute(which, device)))


class Function:
    """A kernel in the primary context of one device, which it loads.

    `records`: the array that a debug build writes to, by name; the attribute has its address and its size in bytes.
    `lock` is held from a launch of such a kernel until its array has been read.
    """

    def __init__(self, device: int, image: bytes, name: str, shared_bytes: int, records: str | None = None) -> None:
        cuda = _driver()
        self.context = _primary(device)
        with _current(self.context), _capture_of_anything():
            # The module holds no copy of the image: the driver's does.
            module = _done("cuModuleLoadData", cuda.cuModuleLoadData(image))
            self.handle = _done("cuModuleGetFunction", cuda.cuModuleGetFunction(module, name.encode()))
            self.records = (0, 0)
            if records is not None:
                status, address, size = cuda.cuModuleGetGlobal(module, records.encode())
                if int(status):
                    raise _refused("cuModuleGetGlobal", int(status), f" for `{records}`")
                self.records = (int(address), int(size))
            self.lock = threading.Lock()
            most = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _done("cuFuncSetAttribute", cuda.cuFuncSetAttribute(self.handle, most, shared_bytes))

    def current(self) -> AbstractContextManager[None]:
        """Make the kernel's context this thread's own for a while: tensor maps are made in one, too."""
        return _current(self.context)


class TensorMap:
    """A CUtensorMap in memory, at `address`."""

    __slots__ = ("_memory", "address")

    def __init__(
        self,
        dtype: int,
        pointer: int,
        dims: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        element_strides: Sequence[int],
        modes: tuple[int, int, int, int],
    ) -> None:
        rank = len(dims)
        # Aligned to 128 bytes, as cuda.h of CUDA 13 has it (12: 64); an object of cuda-bindings is to 16.
        self._memory = ctypes.create_string_buffer(2 * _MAP_BYTES)
        self.address = (ctypes.addressof(self._memory) + _MAP_BYTES - 1) & -_MAP_BYTES
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        status = _encode()(
            self.address, dtype, rank, pointer, wide(*dims), wide(*strides), narrow(*box), narrow(*element_strides),
            *modes,
        )  # fmt: skip
        if status:
            shape = f"dims {list(dims)}, strides {list(strides)} bytes, box {list(box)}"
            raise _refused("cuTensorMapEncodeTiled", status, f" for {shape}")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a launch lies on the device. `overlap`: it may start before the kernels before it are done."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    overlap: bool


class _Here(threading.local):
    """Where the driver writes this thread's current context: numbers convert faster than references do."""

    def __init__(self) -> None:
        self.context = ctypes.c_void_p()
        self.at = ctypes.addressof(self.context)


_HERE = _Here()


class Launch:
    """One launch, made ready: a call makes it on a stream. Several threads may call at a time."""

    __slots__ = ("_arguments", "_attributes", "_configs", "_context", "_handle", "_launch", "_make", "_now", "_parts")

    def __init__(self, function: Function, shape: Shape, arguments: Sequence[TensorMap | int]) -> None:
        cuda = _driver()
        numbers = [ctypes.c_int32(a) if isinstance(a, int) else a for a in arguments]
        places = [n.address if isinstance(n, TensorMap) else ctypes.addressof(n) for n in numbers]
        table = (ctypes.c_void_p * len(places))(*places)
        self._parts = (numbers, table, function)
        self._arguments = ctypes.addressof(table)
        self._handle, self._context = int(function.handle), int(function.context)
        self._launch, self._now = _launch(), _now()
        self._configs: dict[int, tuple[int, Any]] = {}

        def make(stream: int) -> Any:
            config = cuda.CUlaunchConfig()
            config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
            config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
            config.sharedMemBytes, config.hStream = shape.shared_bytes, cuda.CUstream(stream)
            attributes: list[Any] = []
            if max(shape.cluster) > 1:
                attribute = cuda.CUlaunchAttribute()
                attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                size = attribute.value.clusterDim
                size.x, size.y, size.z = shape.cluster
                attributes.append(attribute)
            if shape.overlap:
                attribute = cuda.CUlaunchAttribute()
                attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                attribute.value.programmaticStreamSerializationAllowed = 1
                attributes.append(attribute)
            config.attrs, config.numAttrs = attributes, len(attributes)
            return config

        self._make: Callable[[int], Any] = make

    def __call__(self, stream: int) -> None:
        """Launch on a stream, given as its handle. The device's context need not be current."""
        # One configuration a stream, never changed: a launch lets other threads run while it reads its own.
        found = self._configs.get(stream)
        if found is None:
            if len(self._configs) >= _MOST_STREAMS:
                self._configs = {}
            config = self._make(stream)
            found = self._configs[stream] = (int(config.getPtr()), config)
        self._now(_HERE.at)
        if _HERE.context.value == self._context:
            status = self._launch(found[0], self._handle, self._arguments, None)
        else:
            with _current(self._context):
                status = self._launch(found[0], self._handle, self._arguments, None)
        if status:
            raise _refused("cuLaunchKernelEx", status)


class Watched:
    """A launch of a debug build: a call waits for its end, and passes on what its waits wrote down.

    `judge` is given the words of the array; it raises where the kernel was stopped.
    """

    __slots__ = ("_function", "_judge", "_launch")

    def __init__(self, launch: Launch, function: Function, judge: Callable[[Sequence[int]], None]) -> None:
        self._launch, self._function, self._judge = launch, function, judge

    def __call__(self, stream: int) -> None:
        """Launch on a stream, given as its handle. Raises what `judge` does."""
        cuda, function = _driver(), self._function
        address, size = function.records
        words = (ctypes.c_uint32 * (size // 4))()
        on = cuda.CUstream(stream)
        with function.lock, _current(function.context):
            status = _done("cuStreamIsCapturing", cuda.cuStreamIsCapturing(on))
            if int(status):
                raise ArgumentProblem("a debug build waits for its end, so it cannot be captured into a CUDA graph")
            _done("cuMemsetD8Async", cuda.cuMemsetD8Async(address, 0, size, on))
            self._launch(stream)
            _done("cuMemcpyDtoHAsync", cuda.cuMemcpyDtoHAsync(ctypes.addressof(words), address, size, on))
            _done("cuStreamSynchronize", cuda.cuStreamSynchronize(on))
        if words[0]:
            self._judge(list(words))


@cache
def _driver() -> Any:
    try:
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise LoadProblem("cuda-bindings is not installed (pip install 'gemmspec[cuda]')") from error
    try:
        status, *_ = driver.cuInit(0)
    except Exception as error:  # cuda-pathfinder's own, where there is no libcuda.so.1
        raise LoadProblem(f"there is no CUDA driver on this machine ({error})") from error
    if int(status):
        raise LoadProblem(f"the CUDA driver does not start: cuInit says {status.name}")
    version = int(_done("cuDriverGetVersion", driver.cuDriverGetVersion()))
    if version < _NEEDED_CUDA:
        raise LoadProblem(f"the driver is of CUDA {version // 1000}.{version % 1000 // 10}, and 12.0 is needed")
    return driver


@cache
def _encode() -> Callable[..., int]:
    """Return cuTensorMapEncodeTiled as C has it: into memory of ours, and with arrays."""
    return _entry("cuTensorMapEncodeTiled", _POINTER, _NUMBER, ctypes.c_uint32, *[_POINTER] * 5, *[_NUMBER] * 4)


@cache
def _launch() -> Callable[..., int]:
    """Return cuLaunchKernelEx as C has it: cuda-bindings converts its arguments anew at every launch."""
    return _entry("cuLaunchKernelEx", *[_POINTER] * 4)


@cache
def _now() -> Callable[..., int]:
    """Return cuCtxGetCurrent as C has it. It is too short to let other threads run for."""
    return _entry("cuCtxGetCurrent", _POINTER, prototype=ctypes.PYFUNCTYPE)


def _entry(name: str, *types: Any, prototype: Callable[..., Any] = ctypes.CFUNCTYPE) -> Callable[..., int]:
    """Return a function of the driver that returns a status."""
    cuda = _driver()
    flags = cuda.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    found = cuda.cuGetProcAddress(name.encode(), _NEEDED_CUDA, flags)
    status, address = found[0], found[1]
    if int(status) or not address:
        raise LoadProblem(f"this CUDA driver has no {name}")
    return prototype(_NUMBER, *types)(int(address))


@cache
def _primary(device: int) -> Any:
    """Return the primary context of a device: the one that torch and the CUDA runtime use."""
    return _done("cuDevicePrimaryCtxRetain", _driver().cuDevicePrimaryCtxRetain(device))


@contextmanager
def _current(context: Any) -> Generator[None]:
    cuda = _driver()
    _done("cuCtxPushCurrent", cuda.cuCtxPushCurrent(context))
    try:
        yield
    finally:
        cuda.cuCtxPopCurrent()


@contextmanager
def _capture_of_anything() -> Generator[None]:
    """Let this thread load a module while a stream is being captured into a graph: the load is no part of it."""
    cuda = _driver()
    mode = cuda.CUstreamCaptureMode(_RELAXED)
    before = _done("cuThreadExchangeStreamCaptureMode", cuda.cuThreadExchangeStreamCaptureMode(mode))
    try:
        yield
    finally:
        cuda.cuThreadExchangeStreamCaptureMode(before)


def _done(call: str, result: Any) -> Any:
    """Return what a call of cuda-bindings gives."""
    status, *values = result
    if int(status):
        raise _refused(call, int(status))
    return values[0] if values else None


def _refused(call: str, status: int, why: str = "") -> DriverProblem:
    cuda = _driver()
    known = cuda.CUresult(status)
    text = cuda.cuGetErrorString(known)[1]
    said = text.decode(errors="replace") if text else "unknown error"
    return DriverProblem(f"{call} says {known.name} ({said}){why}", status)
