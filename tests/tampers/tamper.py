"""One way to tamper with a generated module, and what the audit must say of it."""

from __future__ import annotations

from dataclasses import dataclass

from audit_specs import V9


@dataclass(frozen=True)
class Tamper:
    """`old` is replaced by `new` in one place. `where`: in which section that must be told; `says`: in which words."""

    old: str
    new: str
    where: str
    says: tuple[str, ...]
    spec: str = V9
    last: bool = False
    """Replace the last occurrence, not the first."""
