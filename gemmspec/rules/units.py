"""How numbers are written in messages."""

from __future__ import annotations


def kib(size: int) -> str:
    """Return a number of bytes in KiB, with one decimal where it is not whole; rounded up, so that 0 means none."""
    tenths = -(-size * 10 // 1024)
    return f"{tenths // 10} KiB" if tenths % 10 == 0 else f"{tenths / 10:.1f} KiB"


def count(n: int, noun: str) -> str:
    """Return `1 stage` or `4 stages`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
