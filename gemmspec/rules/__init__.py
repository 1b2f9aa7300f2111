"""The table of rules. A new one is one file in its family's folder and one line in that folder's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmspec.rules import memory, protocol, resources, shapes, syntax
from gemmspec.rules.rule import Finding, Rule

if TYPE_CHECKING:
    ADVICE: tuple[Rule, ...]
    RULES: tuple[Rule, ...]

CHECKS: tuple[Rule, ...] = (
    *syntax.RULES,  # GS0xx
    *protocol.RULES,  # GS1xx
    *memory.RULES,  # GS2xx
    *resources.RULES,  # GS3xx
    *shapes.RULES,  # GS4xx
)

__all__ = ["ADVICE", "CHECKS", "RULES", "Finding", "Rule"]


def __getattr__(name: str) -> tuple[Rule, ...]:
    """Import the rules that give advice (GS5xx) when they are asked for, or all rules are: `lint` starts without."""
    if name not in ("ADVICE", "RULES"):
        raise AttributeError(f"module 'gemmspec.rules' has no attribute {name!r}")
    from gemmspec.rules import advice

    return advice.RULES if name == "ADVICE" else (*CHECKS, *advice.RULES)
