"""Starts TVM quickly. For a process of its own (the command line), never for a library's user.

Each step is a habit of TVM or of Python that costs a `compile` time and gives it nothing. Seconds of CPU, about: torch
2.5, source lines of frames 1.2, garbage collection 0.5, parts that no kernel uses 0.5, errors that are caught 0.35. All
lean on internals that may change, so each looks before it acts, and an import that fails under them is repeated without
them.
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
from typing import Any

# What TVM takes if it can be imported: tensors of others, which are never made here, and sessions of many processes.
_OPTIONAL = ("torch", "ml_dtypes", "cuda.bindings", "tvm.runtime.disco")
# What no kernel uses: the graph language, the search for schedules, schedules by rule, backends other than CUDA.
_UNUSED: dict[str, dict[str, object]] = {
    "tvm.relax": {"Function": type("Function", (), {})},
    "tvm.s_tir.meta_schedule": {},
    "tvm.s_tir.dlight": {},
    "tvm.backend._autoload_backends": {"_autoload_backends": lambda: None},
}


def quick_tvm() -> None:
    """Import TVM by the shortest way."""
    if {"tvm", *_OPTIONAL, *_UNUSED} & sys.modules.keys():
        importlib.import_module("tvm")
        return
    # A compile is over, and its memory given back, before collecting garbage would pay; so also at exit.
    gc.disable()
    atexit.register(gc.freeze)
    for name in _OPTIONAL:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]
    for name, contents in _UNUSED.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(contents)
    try:
        importlib.import_module("tvm")
        importlib.import_module("tvm.s_tir")  # relax would have imported it
        with _no_trials():
            importlib.import_module("tvm.backend.loader").load("cuda")
    except Exception:
        # What is loaded has registered itself with TVM's library, and cannot be loaded again.
        for name in _UNUSED:
            del sys.modules[name]
            package, _, part = name.rpartition(".")
            vars(sys.modules.get(package, sys)).pop(part, None)
        importlib.import_module("tvm")
        importlib.import_module("tvm.relax")
        importlib.import_module("tvm.backend._autoload_backends")._autoload_backends()
    finally:
        for name in _OPTIONAL:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


@contextmanager
def _no_trials() -> Generator[None]:
    """Let the CUDA backend name its operators for the printer without an error.

    It asks for a hundred that are not there, names one that has its name, and goes on. But each is an error in TVM's
    library, and the first reads the debug symbols of every library of the process, the interpreter's too.
    """
    builder: Any = importlib.import_module("tvm.tirx.script.builder.ir")
    operator: Any = importlib.import_module("tvm.ir").Op
    get, set_attribute = operator.get, builder._register_op_attr
    known = set[str]()

    def known_only(name: str) -> Any:
        if name not in known:
            names = operator.list_op_names()
            if len(names) != len(known):
                known.update(names)
            if name not in known:
                raise LookupError(name)
        return get(name)

    def if_new(name: str, attribute: str, value: str, level: int) -> None:
        if get(name).get_attr(attribute) != value:
            set_attribute(name, attribute, value, level=level)

    operator.get, builder._register_op_attr = staticmethod(known_only), if_new
    try:
        yield
    finally:
        operator.get, builder._register_op_attr = staticmethod(get), set_attribute


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
