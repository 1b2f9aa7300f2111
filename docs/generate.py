"""Write the pages that are made from code: docs/rules/ from the rules, docs/report.schema.json from the JSON report.

python docs/generate.py            write what is out of date
python docs/generate.py --check    only say what is, and end with status 1 if anything
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gemmspec.cli.explain import page
from gemmspec.cli.rules import table
from gemmspec.report.json import schema
from gemmspec.rules import RULES

DOCS = Path(__file__).parent
INDEX = """# Rules

Errors block code generation (`--force` generates all the same). Advice leaves the exit status alone.
`gemmspec explain GS301` prints a page in the terminal. These pages are generated from `gemmspec/rules/` by
`docs/generate.py`.

"""


def generated() -> dict[Path, str]:
    """Return the text of every generated file by its path."""
    pages = {DOCS / "rules" / f"{rule.code}.md": page(rule) for rule in RULES}
    pages[DOCS / "rules" / "README.md"] = INDEX + table(RULES, links=True)
    pages[DOCS / "report.schema.json"] = json.dumps(schema(), indent=2) + "\n"
    return pages


def stale() -> list[Path]:
    """Return the generated files that are missing, out of date, or left over from a rule that is gone."""
    pages = generated()
    wrong = [p for p, text in pages.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    return wrong + [p for p in sorted((DOCS / "rules").glob("*.md")) if p not in pages]


def main() -> int:
    pages, wrong = generated(), stale()
    check = "--check" in sys.argv[1:]
    for path in wrong:
        print(f"{'out of date' if check else 'wrote' if path in pages else 'deleted'}: {path.relative_to(DOCS.parent)}")
        if check:
            continue
        if path in pages:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
        else:
            path.unlink()
    return int(check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
