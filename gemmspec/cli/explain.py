"""`gemmspec explain`: print a rule's page. The pages under docs/rules/ are what `page` returns."""

from __future__ import annotations

import click

from gemmspec.cli.output import say
from gemmspec.rules.rule import Rule


@click.command("explain")
@click.argument("rule", metavar="CODE|NAME")
def command(rule: str) -> None:
    """Say what a rule checks, why it matters, and what it does not see."""
    say(page(_named(rule)))


def page(rule: Rule) -> str:
    """Return a rule's page in Markdown: what its author wrote, the bad spec, what is said of it, and the good spec."""
    from gemmspec.driver import check
    from gemmspec.report.text import render_diagnostic
    from gemmspec.source import SourceFile

    title = f"# {rule.code} {rule.name} ({rule.severity.value})\n"
    if not rule.by_spec:
        return f"{title}\n{rule.page}"
    source = SourceFile(f"{rule.stem.name}.bad.gemmspec", rule.bad)
    said = [d for d in check(source, advice=True).report.diagnostics if d.code == rule.code]
    parts = [
        title,
        rule.page,
        f"## Example\n\n```\n{rule.bad}```\n",
        "```text\n" + "\n".join(render_diagnostic(d, source) for d in said) + "```\n",
        f"Instead:\n\n```\n{rule.good}```\n",
    ]
    return "\n".join(parts)


def _named(word: str) -> Rule:
    from gemmspec.rules import RULES

    by_word = {key: rule for rule in RULES for key in (rule.code, rule.name)}
    found = by_word.get(word) or by_word.get(word.upper()) or by_word.get(word.lower().replace("_", "-"))
    if found is not None:
        return found
    import difflib

    near = difflib.get_close_matches(word, by_word, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `gemmspec rules` lists all"
    raise click.UsageError(f"there is no rule `{word}`{hint}")
