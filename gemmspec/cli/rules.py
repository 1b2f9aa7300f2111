"""`gemmspec rules`: list all rules."""

from __future__ import annotations

import click

from gemmspec.cli.output import say
from gemmspec.diagnostics import Severity
from gemmspec.rules.rule import Rule

_INDENT = " " * 7


@click.command("rules")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(form: str) -> None:
    """List all rules: code, name, severity, what each checks."""
    from gemmspec.rules import RULES

    if form == "json":
        import json

        words = ("code", "name", "severity", "about", "checks")
        rows = [dict(zip(words, (r.code, r.name, r.severity.value, r.subject, r.summary), strict=True)) for r in RULES]
        say(json.dumps(rows, indent=2) + "\n")
    elif form == "markdown":
        say(table(RULES))
    else:
        say("".join(_entry(rule) for rule in RULES))


def _entry(rule: Rule) -> str:
    """Return a rule's line, and what it checks below it, wrapped."""
    import textwrap

    kind = "" if rule.severity is Severity.ERROR else f" ({rule.severity.value})"
    summary = textwrap.fill(rule.summary, 80, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return f"{rule.code}  {rule.name}{kind}\n{summary}\n"


def table(rules: tuple[Rule, ...], *, links: bool = False) -> str:
    """Return the rules as a Markdown table; with `links`, each code leads to its page in the same folder."""
    rows = ["| code | name | severity | what it checks |", "|---|---|---|---|"]
    for r in rules:
        code = f"[{r.code}]({r.code}.md)" if links else r.code
        rows.append(f"| {code} | {r.name} | {r.severity.value} | {r.summary} |")
    return "\n".join(rows) + "\n"
