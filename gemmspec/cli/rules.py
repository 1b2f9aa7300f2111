"""`gemmspec rules`: list all rules."""

from __future__ import annotations

import click

from gemmspec.cli.output import say
from gemmspec.rules.rule import Rule


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
        width = max(len(r.name) for r in RULES)
        say("".join(f"{r.code}  {r.name:{width}}  {r.severity.value:7}  {r.summary}\n" for r in RULES))


def table(rules: tuple[Rule, ...], *, links: bool = False) -> str:
    """Return the rules as a Markdown table; with `links`, each code leads to its page in the same folder."""
    rows = ["| code | name | severity | what it checks |", "|---|---|---|---|"]
    for r in rules:
        code = f"[{r.code}]({r.code}.md)" if links else r.code
        rows.append(f"| {code} | {r.name} | {r.severity.value} | {r.summary} |")
    return "\n".join(rows) + "\n"
