"""Puts a table into docs/performance.md, between the markers of its section."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def put(section: str, table: str) -> None:
    """Replace what stands between `<!-- section -->` and `<!-- end -->`; raise if the section is not there."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(f"<!-- {section} -->\n") + len(f"<!-- {section} -->\n")
    end = text.index("<!-- end -->", start)
    PAGE.write_text(text[:start] + table.rstrip("\n") + "\n" + text[end:], encoding="utf-8")


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
