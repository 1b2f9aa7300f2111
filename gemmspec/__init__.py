"""Proves warp-specialized GPU GEMM pipelines sound, and writes their kernels. The API is in `gemmspec.api`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmspec.api import SpecError, build, check, load, lower
    from gemmspec.version import __version__

__all__ = ["SpecError", "__version__", "build", "check", "load", "lower"]


def __getattr__(name: str) -> Any:
    """Import the API when it is first used: the command line and the runtime start without it."""
    if name not in __all__:
        raise AttributeError(f"module 'gemmspec' has no attribute {name!r}")
    from gemmspec import api, version

    return getattr(version if name == "__version__" else api, name)
