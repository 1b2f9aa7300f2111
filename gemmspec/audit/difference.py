"""What the audit finds."""

from __future__ import annotations

from dataclasses import dataclass

from gemmspec.source import Span


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the kernel is not what the Protocol says.

    `where`: "memory", "launch", "prologue", "end", or a role, and there which CTA, warps and trip. `expected`: the
    Protocol's side. `found`: the kernel's. `span`: the words of the spec that the Protocol's side comes from.
    """

    where: str
    expected: str
    found: str
    span: Span | None

    def __str__(self) -> str:
        return f"{self.where}: the protocol has `{self.expected}`, the kernel has `{self.found}`"
