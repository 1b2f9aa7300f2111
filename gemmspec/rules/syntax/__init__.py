"""GS0xx: what the parser and the resolver find. These rules have no check here, only their pages and examples."""

from pathlib import Path

from gemmspec.rules.rule import Rule, syntax_rule

_HERE = Path(__file__).parent

RULES: tuple[Rule, ...] = (
    syntax_rule(_HERE, "GS001", "unexpected-text"),
    syntax_rule(_HERE, "GS002", "unreadable-text"),
    syntax_rule(_HERE, "GS003", "missing-item"),
    syntax_rule(_HERE, "GS004", "unknown-keyword"),
    syntax_rule(_HERE, "GS005", "repeated-item"),
    syntax_rule(_HERE, "GS006", "number-out-of-range"),
    syntax_rule(_HERE, "GS007", "unknown-target"),
    syntax_rule(_HERE, "GS008", "unknown-word"),
    syntax_rule(_HERE, "GS009", "unknown-property"),
    syntax_rule(_HERE, "GS010", "repeated-name"),
    syntax_rule(_HERE, "GS011", "unknown-role"),
    syntax_rule(_HERE, "GS012", "unknown-barrier"),
    syntax_rule(_HERE, "GS013", "malformed-gemm"),
    syntax_rule(_HERE, "GS014", "bad-placement"),
    syntax_rule(_HERE, "GS015", "misplaced-statement"),
    syntax_rule(_HERE, "GS016", "bad-index"),
    syntax_rule(_HERE, "GS017", "repeated-property"),
    syntax_rule(_HERE, "GS018", "missing-role"),
    syntax_rule(_HERE, "GS019", "ring-used-in-nested-loops"),
)
