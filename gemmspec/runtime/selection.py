"""Several kernels that are called as one: the best of them for the shape of each call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gemmspec.runtime import driver
from gemmspec.runtime.choice import Card, Choice, Results, choose
from gemmspec.runtime.kernel import Bound, Kernel, Stream
from gemmspec.runtime.problem import ArgumentProblem, LoadProblem
from gemmspec.runtime.table import Result, Setting
from gemmspec.runtime.view import is_tensor, torch_type, view_of

if TYPE_CHECKING:
    from gemmspec.runtime.operator import Operators

_MOST = 4096  # calls that are remembered, of each kind; then all are forgotten


class Selection:
    """Kernels that are called as one, as a `Kernel` is. Threads and devices may share it.

    Each shape is decided once; what a call costs beside that of its kernel is a look into a dictionary.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        rows: Sequence[tuple[Setting, Result]] = (),
        *,
        card_of: Callable[[int], Card] | None = None,
    ) -> None:
        if not kernels:
            raise LoadProblem("there are no kernels to select from")
        self.kernels = tuple(kernels)
        self._rows = rows
        self._results = Results(rows)
        self._ops: Operators | None = None
        self._card_of = card_of or _card
        self._cards: dict[int, Card] = {}
        self._choices: dict[tuple[object, ...], Choice] = {}
        self._quick: dict[tuple[object, ...], Kernel] = {}

    @property
    def name(self) -> str:
        """What it is called as an operator."""
        return "select"

    def __repr__(self) -> str:
        return (
            f"<gemmspec selection of {len(self.kernels)} kernels: {', '.join(kernel.name for kernel in self.kernels)}>"
        )

    def __call__(self, A: Any, B: Any, D: Any = None, *, stream: Stream | None = None) -> Any:
        """Compute D = A @ B^T with the best kernel for these matrices, as `Kernel` does, and return D.

        Raises `ArgumentProblem` where no kernel takes them. Inside `torch.compile`, call `ops`.
        """
        try:
            key = (A.shape, B.shape, A.dtype, None if D is None else D.dtype, A.get_device())
            kernel = self._quick[key]
        except (AttributeError, KeyError, TypeError):
            kernel = self.kernel_for(A, B, D)
        return kernel(A, B, D, stream=stream)

    def bind(self, A: Any, B: Any, D: Any = None) -> Bound:
        """Return the call with these matrices, as `Kernel.bind` does: the choice is made now."""
        return self.kernel_for(A, B, D).bind(A, B, D)

    def kernel_for(self, A: Any, B: Any, D: Any = None) -> Kernel:
        """Return the kernel that a call with these matrices takes. Raises `ArgumentProblem`."""
        views = [view_of(name, matrix) for name, matrix in (("A", A), ("B", B), ("D", D)) if matrix is not None]
        a, b, *written = views
        for name, view in zip("ABD", views, strict=False):
            if len(view.shape) != 2:
                raise ArgumentProblem(f"`{name}` has {len(view.shape)} dimensions, and a product takes 2")
        if a.shape[1] != b.shape[1]:
            raise ArgumentProblem(f"`B` has {b.shape[1]} columns, and `A` has {a.shape[1]} columns: both are K")
        shape = a.shape[0], b.shape[0], a.shape[1]
        result = written[0].dtype if written else None
        kernel = self._choice(shape, a.dtype, b.dtype, result, a.device).kernel
        if is_tensor(A) and is_tensor(B) and (D is None or is_tensor(D)):
            if len(self._quick) >= _MOST:
                self._quick = {}
            self._quick[A.shape, B.shape, A.dtype, None if D is None else D.dtype, A.get_device()] = kernel
        return kernel

    def choose(
        self, m: int, n: int, k: int, operand: str = "f16", result: str | None = None, device: int = 0
    ) -> Choice:
        """Return the kernel for M, N and K, and why it is that one. Types as in specs: `f16`, `bf16`, `f32`.

        `result`: that of D; if left out, the one that a call without D gives. Raises `ArgumentProblem`.
        """
        return self._choice((m, n, k), operand, operand, result, device)

    @property
    def ops(self) -> Operators:
        """The selection as operators of torch: `ops.matmul(A, B)` and `ops.matmul_into(A, B, D)`."""
        if self._ops is None:
            from gemmspec.runtime.operator import Operators

            contents = "".join(kernel.content for kernel in self.kernels)
            content = hashlib.sha256((contents + repr(self._rows)).encode()).hexdigest()
            self._ops = Operators.of(self.name, content, self, self._torch_result)
        return self._ops

    def _choice(self, shape: tuple[int, int, int], a: str, b: str, result: str | None, device: int) -> Choice:
        key = (shape, a, b, result, device)
        found = self._choices.get(key)
        if found is None:
            types = f"{a} {b} {result or self._result_of(a, b)}"
            found = choose(self.kernels, self._results, shape, types, self._card(device))
            if len(self._choices) >= _MOST:
                self._choices = {}
            self._choices[key] = found
        return found

    def _card(self, device: int) -> Card:
        card = self._cards.get(device)
        if card is None:
            card = self._cards[device] = self._card_of(device)
        return card

    def _result_of(self, a: str, b: str) -> str:
        """Return the type of D where a call does not give one: that of A where a kernel has it, else the only one."""
        found = {d for x, y, d in (kernel.manifest.types.split() for kernel in self.kernels) if (x, y) == (a, b)}
        if a in found or not found:
            return a
        if len(found) > 1:
            raise ArgumentProblem(f"D can be {' or '.join(sorted(found))} for `A` of {a}: pass a D")
        return found.pop()

    def _torch_result(self, operand: Any) -> Any:
        name = {str(torch_type(name)): name for name in ("f16", "bf16", "f32")}[str(operand)]
        return torch_type(self._result_of(name, name))


def _card(device: int) -> Card:
    return Card(driver.device_name(device), driver.multiprocessors(device), driver.capability(device))
