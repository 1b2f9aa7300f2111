"""A kernel that can be called: arguments checked, tensor maps made once, launched on the caller's stream."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gemmspec.runtime import driver
from gemmspec.runtime.arithmetic import value
from gemmspec.runtime.check import sizes_of
from gemmspec.runtime.hang import HangError
from gemmspec.runtime.manifest import Manifest, TensorMap
from gemmspec.runtime.problem import ArgumentProblem, LoadProblem
from gemmspec.runtime.recent import Recent
from gemmspec.runtime.view import View, is_tensor, torch_type, view_of
from gemmspec.runtime.waits import stop_of

if TYPE_CHECKING:
    from gemmspec.runtime.operator import Operators

MOST_LAUNCHES = 256
MOST_MAPS = 1024

Stream = int | Any
"""A CUstream as a number, or an object with `cuda_stream` (torch) or `ptr` (CuPy)."""


class Kernel:
    """A kernel from its cubin and manifest. Nothing is loaded onto a device before the first launch there.

    Threads and devices may share one.
    """

    def __init__(self, manifest: Manifest, cubin: bytes, *, overlap: bool = True) -> None:
        self.manifest = manifest
        self._overlap = overlap and manifest.programmatic
        self._cubin = cubin
        self.content = hashlib.sha256(cubin + manifest.text.encode()).hexdigest()
        """A hash of the machine code and of its launch: what times that were measured hold for."""
        self._ops: Operators | None = None
        self._functions: dict[int, driver.Function] = {}
        self._launches: Recent[tuple[object, ...], _Launch] = Recent(MOST_LAUNCHES)
        self._maps: Recent[tuple[object, ...], driver.TensorMap] = Recent(MOST_MAPS)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The kernel's name in its spec."""
        return self.manifest.name

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        return self._cubin

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n} {'dynamic' if s is None else f'= {s}'}" for n, s in self.manifest.sizes.items())
        return f"<gemmspec kernel {self.name} for {self.manifest.target}: {sizes}>"

    def __call__(self, A: Any, B: Any, D: Any = None, *, stream: Stream | None = None) -> Any:
        """Compute D = A @ B^T on a stream, and return D, which torch allocates where none is given.

        The stream is torch's current one for torch tensors; else the one that D's interface names, or the default one.
        Raises `ArgumentProblem` before anything is launched. Inside `torch.compile`, call `ops`.
        """
        out = self.empty(A, B) if D is None else D
        if is_tensor(A) and is_tensor(B) and is_tensor(out):
            # Without views: they take longer than the launch.
            key = (*_identity(A), *_identity(B), *_identity(out))
            launch = self._launches.get(key)
            if launch is None:
                launch, _ = self._prepare(A, B, out)
                self._launches.put(key, launch)
            launch(_current_stream(out.get_device()) if stream is None else _handle(stream))
            return out
        launch, view = self._prepare(A, B, out)
        launch(_handle(stream) if stream is not None else _stream_of(out, view))
        return out

    def bind(self, A: Any, B: Any, D: Any = None) -> Bound:
        """Return the call with these matrices, checked and ready, for the least work at each launch.

        It keeps the matrices alive, and what is in them may change between launches.
        """
        out = self.empty(A, B) if D is None else D
        launch, view = self._prepare(A, B, out)
        return Bound(launch, (A, B, out), view)

    def empty(self, A: Any, B: Any) -> Any:
        """Return a torch tensor that can be D for these A and B."""
        import torch

        if not (is_tensor(A) and is_tensor(B) and A.dim() == B.dim() == 2):
            raise ArgumentProblem("D can be left out only where A and B are torch tensors of 2 dimensions")
        return torch.empty((A.shape[0], B.shape[0]), dtype=self.torch_dtype, device=A.device)

    @property
    def torch_dtype(self) -> Any:
        """The type of D as torch has it."""
        return torch_type(self.manifest.tensors[2].dtype)

    @property
    def ops(self) -> Operators:
        """The kernel as operators of torch, for `torch.compile`: `ops.matmul(A, B)` and `ops.matmul_into(A, B, D)`."""
        if self._ops is None:
            from gemmspec.runtime.operator import Operators

            self._ops = Operators.of(self.name, self.content, self, lambda operand: self.torch_dtype)
        return self._ops

    def function(self, device: int) -> driver.Function:
        """Return the kernel loaded onto a device. Raises `LoadProblem` where it is not built for that one."""
        found = self._functions.get(device)
        if found is not None:
            return found
        with self._lock:
            if device not in self._functions:
                self._check_device(device)
                manifest = self.manifest
                records = manifest.waits.records if manifest.waits is not None else None
                loaded = driver.Function(device, self._cubin, manifest.kernel, manifest.shared_bytes, records)
                self._functions[device] = loaded
            return self._functions[device]

    def _check_device(self, device: int) -> None:
        has, needs = driver.capability(device), self.manifest.capability
        if not self.manifest.runs_on(has):
            raise LoadProblem(
                f"kernel `{self.name}` is built for {self.manifest.target} (compute capability {needs[0]}.{needs[1]}), "
                f"and device {device}, {driver.device_name(device)}, is of {has[0]}.{has[1]}"
            )

    def _prepare(self, *matrices: Any) -> tuple[_Launch, View]:
        manifest = self.manifest
        views = [view_of(t.name, matrix) for t, matrix in zip(manifest.tensors, matrices, strict=True)]
        written = views[-1]
        launch = self._launches.get(tuple(views))
        if launch is None:
            launch = self._launch(views)
            self._launches.put(tuple(views), launch)
        return launch, written

    def _launch(self, views: list[View]) -> _Launch:
        manifest, written = self.manifest, views[-1]
        sizes = sizes_of(manifest, views)
        if not all(written.shape):
            return _Nothing()
        function = self.function(written.device)
        with function.current():
            arguments = [
                self._map(place, argument, views[argument.tensor].pointer, sizes)
                if isinstance(argument, TensorMap)
                else value(argument, sizes)
                for place, argument in enumerate(manifest.arguments)
            ]
        x, y, z = (value(n, sizes) for n in manifest.grid)
        # A debug build starts with its records cleared, so not before what is ahead of it on the stream is done.
        overlap = self._overlap and manifest.waits is None
        shape = driver.Shape((x, y, z), manifest.block, manifest.cluster, manifest.shared_bytes, overlap)
        launch = driver.Launch(function, shape, arguments)
        return launch if manifest.waits is None else self._watched(launch, function, sizes)

    def _watched(self, launch: driver.Launch, function: driver.Function, sizes: dict[str, int]) -> driver.Watched:
        """Return a launch of a debug build, which raises `HangError` where a wait gave up."""
        name, waits, mnk = self.name, self.manifest.waits, [sizes[n] for n in self.manifest.sizes]
        assert waits is not None, "a debug build has a table of its waits"
        if function.records[1] != waits.bytes:
            raise LoadProblem(f"the cubin of `{name}` is not the one that its manifest was made with")

        def judge(words: Sequence[int]) -> None:
            stop = stop_of(waits, words, mnk)
            if stop is not None:
                raise HangError(name, waits, stop)

        return driver.Watched(launch, function, judge)

    def _map(self, place: int, wanted: TensorMap, pointer: int, sizes: dict[str, int]) -> driver.TensorMap:
        dims = tuple(value(n, sizes) for n in wanted.dims)
        key = (place, pointer, dims)
        found = self._maps.get(key)
        if found is None:
            strides = [value(n, sizes) for n in wanted.strides]
            modes = (wanted.interleave, wanted.swizzle, wanted.l2_promotion, wanted.oob_fill)
            at = pointer + wanted.byte_offset
            found = driver.TensorMap(wanted.dtype, at, dims, strides, wanted.box, wanted.element_strides, modes)
            self._maps.put(key, found)
        return found


class Bound:
    """A launch with its matrices."""

    __slots__ = ("_launch", "_matrices", "_stream")

    def __init__(self, launch: Callable[[int], None], matrices: tuple[Any, Any, Any], view: View) -> None:
        self._launch, self._matrices = launch, matrices
        device = view.device
        if not is_tensor(self.D):
            fixed = _stream_of(self.D, view)
            self._stream: Callable[[], int] = lambda: fixed
        else:
            raw = _raw_stream() or _current_stream
            self._stream = lambda: raw(device)

    @property
    def D(self) -> Any:
        """The matrix that it writes."""
        return self._matrices[2]

    def __call__(self, stream: Stream | None = None) -> None:
        """Launch on a stream: that which an unbound call would take, if none is given."""
        if stream is None:
            self._launch(self._stream())
        else:
            self._launch(stream if type(stream) is int else _handle(stream))


class _Nothing:
    """The launch for a D without elements."""

    def __call__(self, stream: int) -> None:
        pass


_Launch = driver.Launch | driver.Watched | _Nothing


def _identity(tensor: Any) -> tuple[object, ...]:
    """Return all of a tensor that a launch depends on, and the checks."""
    return tensor.data_ptr(), tensor.shape, tensor.dtype, tensor.is_contiguous(), tensor.get_device()


def _handle(stream: Stream) -> int:
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise ArgumentProblem(f"{type(stream).__name__} is no stream: pass its handle, or a stream of torch or CuPy")


def _stream_of(matrix: object, view: View) -> int:
    if is_tensor(matrix):
        return _current_stream(view.device)
    # 1 and 2 of the interface are the legacy and the per-thread default stream, as they are for the driver.
    return view.stream or 0


def _current_stream(device: int) -> int:
    raw = _raw_stream()
    return raw(device) if raw is not None else sys.modules["torch"].cuda.current_stream(device).cuda_stream


def _raw_stream() -> Callable[[int], int] | None:
    """Return torch's own short way to the current stream, which what it compiles uses too; None where it is gone."""
    return getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)
