"""GS1xx: who waits for whom."""

from gemmspec.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
