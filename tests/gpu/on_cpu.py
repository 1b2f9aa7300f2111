"""Runs a script of bench/gpu without a GPU: torch keeps its tensors on the CPU, and libcuda is the stub.

    LD_LIBRARY_PATH=<folder of the stub> python tests/gpu/on_cpu.py bench/gpu/check.py --largest 64

Times mean nothing here. What a script does, and what it asks of the runtime and of torch, is real.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch


class Event:
    """A CUDA event: a time."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * 1e3


class Graph:
    """A CUDA graph that replays in no time."""

    def replay(self) -> None:
        time.sleep(1e-4)


def on_cpu(make: Any) -> Any:
    """Return a function of torch that takes no notice of `device`."""
    return lambda *args, device=None, **rest: make(*args, **rest)


def pretend() -> None:
    """Let torch believe in one H200."""
    card = SimpleNamespace(name="pretended H200", major=9, minor=0, multi_processor_count=132)
    fakes: dict[str, Any] = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "device_count": lambda: 2,
        "set_device": lambda number: None,
        "get_device_properties": lambda device: card,
        "synchronize": lambda: None,
        "current_stream": lambda device=0: SimpleNamespace(cuda_stream=0),
        "Event": Event,
        "CUDAGraph": Graph,
        "graph": lambda graph: contextlib.nullcontext(),
    }
    for name, fake in fakes.items():
        setattr(torch.cuda, name, fake)
    for name in ("randn", "full", "zeros", "empty"):
        setattr(torch, name, on_cpu(getattr(torch, name)))
    library: Any = torch.library
    register = library.custom_op
    library.custom_op = lambda *args, device_types=None, **rest: register(*args, **rest)
    tensor: Any = torch.Tensor
    tensor.is_cuda = property(lambda self: True)
    tensor.get_device = lambda self: 0
    module: Any = torch._C
    module._cuda_getCurrentRawStream = lambda device: 0


if __name__ in ("__main__", "__mp_main__"):  # and in the processes that a script spawns
    pretend()

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    # Not by runpy: this stays the main module, which processes that are spawned import first.
    code = compile(Path(sys.argv[0]).read_text(encoding="utf-8"), sys.argv[0], "exec")
    exec(code, {"__name__": "__main__", "__file__": sys.argv[0]})
