"""Printing: colours only where they are wanted, and no complaint when the reader of a pipe has left."""

from __future__ import annotations

import os
import sys


def say(text: str) -> None:
    """Write text to standard output as it stands. A closed pipe is no error: the exit status still tells."""
    try:
        _encodable(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes at exit; without this it would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """Write one line to standard error."""
    print(f"gemmspec: {message}", file=sys.stderr)


def wants_colour(when: str) -> bool:
    """Say whether to colour standard output: `always`, `never`, or `auto`.

    `auto` heeds NO_COLOR (https://no-color.org), then FORCE_COLOR, then whether it is a terminal.
    """
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _encodable(text: str) -> None:
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
