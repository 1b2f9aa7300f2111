"""The table of rules. A new one is one file in its family's folder and one line in that folder's table."""

from gemmspec.diagnostics import Severity
from gemmspec.rules import advice, memory, protocol, resources, shapes, syntax
from gemmspec.rules.rule import Finding, Rule

RULES: tuple[Rule, ...] = (
    *syntax.RULES,  # GS0xx
    *protocol.RULES,  # GS1xx
    *memory.RULES,  # GS2xx
    *resources.RULES,  # GS3xx
    *shapes.RULES,  # GS4xx
    *advice.RULES,  # GS5xx
)

CHECKS = tuple(rule for rule in RULES if rule.severity is not Severity.ADVICE)
ADVICE = tuple(rule for rule in RULES if rule.severity is Severity.ADVICE)

__all__ = ["ADVICE", "CHECKS", "RULES", "Finding", "Rule"]
