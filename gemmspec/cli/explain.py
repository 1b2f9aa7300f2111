"""`gemmspec explain`: print a rule's page. The pages under docs/rules/ are what `page` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gemmspec.cli.output import complain, say
from gemmspec.rules.rule import Rule

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from gemmspec.rules import RULES

    words = [(r.code, r.name) for r in RULES] + [(r.name, r.summary) for r in RULES if incomplete[:1].islower()]
    return [CompletionItem(word, help=text) for word, text in words if word.lower().startswith(incomplete.lower())]


@click.command("explain")
@click.argument("rule", metavar="CODE|NAME", shell_complete=_words)
def command(rule: str) -> int:
    """Say what a rule checks, why it matters, and what it does not see."""
    from gemmspec.rules import RULES
    from gemmspec.suggest import hint

    by_word = {key: r for r in RULES for key in (r.code, r.name)}
    found = by_word.get(rule) or by_word.get(rule.upper()) or by_word.get(rule.lower().replace("_", "-"))
    if found is None:
        complain(f"there is no rule `{rule}`{hint(rule, by_word) or '; `gemmspec rules` lists all'}")
        return 2
    say(page(found))
    return 0


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
