"""Starts TVM quickly. For a process of its own (the command line), never for a library's user.

Each step is a habit of TVM or of Python that costs a `compile` time and gives it nothing. Of 11.7 CPU seconds of a
whole process on v9 (two busy cores, where all takes twice as long) they take 8.7: torch 5, source lines of frames 2,
garbage collection 1, relax 0.6. All lean on internals that may change, so each looks before it acts, and an import
that fails under them is repeated without them.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import inspect
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, ModuleType


def quick_tvm() -> None:
    """Import TVM by the shortest way."""
    # tvm_ffi imports torch where it finds it, for tensors that are never made here.
    held = {name: sys.modules[name] for name in ("torch", "tvm.relax") if name in sys.modules}
    if "tvm" in sys.modules or held:
        importlib.import_module("tvm")
        return
    sys.modules["torch"] = None  # pyright: ignore[reportArgumentType]
    # The graph language is a fifth of the import, and no kernel uses it.
    relax = ModuleType("tvm.relax")
    relax.__dict__["Function"] = type("Function", (), {})
    sys.modules["tvm.relax"] = relax
    # A compile is over, and its memory given back, before collecting garbage would pay; so also at exit.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        importlib.import_module("tvm")
        importlib.import_module("tvm.s_tir")  # relax would have imported it
    except Exception:
        # What is loaded has registered itself with TVM's library, and cannot be loaded again.
        del sys.modules["tvm.relax"]
        vars(sys.modules.get("tvm", relax)).pop("relax", None)
        importlib.import_module("tvm")
        importlib.import_module("tvm.relax")
    finally:
        if sys.modules.get("torch") is None:
            sys.modules.pop("torch", None)


@contextmanager
def light_frames() -> Generator[None]:
    """Let `inspect.stack` say where each frame is without reading the source around it.

    TVM's parser asks for the stack at every helper that it inlines, and uses the frames only; Python looks up the
    module and the lines of each, which is most of the time of parsing a kernel.
    """
    kept = (inspect.stack, inspect.getouterframes)
    inspect.stack, inspect.getouterframes = _stack, _outer
    try:
        yield
    finally:
        inspect.stack, inspect.getouterframes = kept


def _stack(context: int = 1) -> list[inspect.FrameInfo]:
    return _outer(sys._getframe(1), context)  # pyright: ignore[reportPrivateUsage]


def _outer(frame: FrameType | None, context: int = 1) -> list[inspect.FrameInfo]:
    frames: list[inspect.FrameInfo] = []
    while frame is not None:
        code = frame.f_code
        frames.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return frames
