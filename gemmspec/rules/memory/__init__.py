"""GS2xx: who reads and writes what, and when."""

from gemmspec.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
