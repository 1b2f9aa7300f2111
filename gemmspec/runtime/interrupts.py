"""Ctrl-C, and when it may come."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Generator[None]:
    """Put Ctrl-C off, for processes that are started here too: in the midst of imports it would be traced back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
