"""Ends the process when a kernel hangs: nothing else can, for a call that waits for the GPU never returns."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

HANGS = 97
"""The exit status of a process that was ended so."""


class Watchdog:
    """Ends the process with status `HANGS` if `beat` was not called for so many seconds.

    `last_words` is called before, with what the last `beat` said.
    """

    def __init__(self, seconds: float = 20.0, last_words: Callable[[str], None] = lambda doing: None) -> None:
        self._seconds = seconds
        self._last_words = last_words
        self._last = time.monotonic()
        self._doing = "start"
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def beat(self, doing: str = "") -> None:
        """Say that all is well, and what is done next."""
        self._last = time.monotonic()
        self._doing = doing or self._doing

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            if time.monotonic() - self._last > self._seconds:
                print(
                    f"gemmspec: nothing moved for {self._seconds:.0f} s, the GPU hangs: {self._doing}", file=sys.stderr
                )
                sys.stderr.flush()
                sys.stdout.flush()
                self._last_words(self._doing)
                os._exit(HANGS)
