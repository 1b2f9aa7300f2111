"""Reads the properties of a role, barrier or schedule line: which names are known, and what values they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmspec.diagnostics import Label
from gemmspec.model.findings import Findings, plural, shown, shown_value
from gemmspec.model.spec import Given
from gemmspec.source import Span
from gemmspec.syntax.nodes import Number, Property, Value, Word


def by_name(properties: Sequence[Property], known: Sequence[str], findings: Findings) -> dict[str, Property]:
    """Return the properties by name. Unknown ones and second ones are findings and left out.

    A misspelled name counts as the one that was meant, unless that one is given too.
    """
    found: dict[str, Property] = {}
    guesses: list[tuple[str, Property]] = []
    for prop in properties:
        name = prop.name.text
        if name not in known:
            meant = findings.unknown("GS009", "property", prop.name, known)
            if meant is not None:
                guesses.append((meant, prop))
        elif name in found:
            findings.repeated("GS017", f"`{name}`", found[name].span, prop.span)
        else:
            found[name] = prop
    for name, prop in guesses:
        found.setdefault(name, prop)
    return found


def number(prop: Property | None, low: int, high: int, findings: Findings) -> Given[int] | None:
    """Return the one number of a property, if it is given and lies in low..high."""
    if prop is None or not takes(prop, 1, "a number", findings):
        return None
    value = prop.values[0]
    if not isinstance(value, Number):
        findings.error("GS008", f"`{prop.name.text}` takes a number, but has `{shown_value(value)}`", value.span)
        return None
    result = findings.in_range(f"`{prop.name.text}`", value, low, high)
    return Given(result, prop.span) if result is not None else None


def takes(prop: Property, count: int, what: str, findings: Findings) -> bool:
    """Say whether a property has at least `count` values; too few and too many are findings."""
    if len(prop.values) < count:
        message = f"`{prop.name.text}` takes {what}, but has {plural(len(prop.values), 'value')}"
        findings.error("GS001", message, prop.span)
        return False
    if len(prop.values) > count:
        surplus(prop.values[count:], f"`{prop.name.text}` takes {what}", findings)
    return True


def surplus(values: Sequence[Value], takes_what: str, findings: Findings) -> None:
    """Add a finding on values that stand where no value may."""
    span = values[0].span.to(values[-1].span)
    more = shown(findings.source.snippet(span))
    findings.error("GS001", f"{takes_what}, but is followed by `{more}`", span, helps=(f"delete `{more}`",))


def choice(value: Value, what: str, options: Sequence[str], findings: Findings) -> str | None:
    """Return which of the options a value is, or was surely meant to be."""
    if isinstance(value, Word) and value.text in options:
        return value.text
    return findings.unknown("GS008", what, Word(value.text, value.span), options)


def only_for(
    props: Mapping[str, Property],
    owners: Mapping[str, str],
    kinds: Sequence[Word],
    what: str,
    findings: Findings,
) -> dict[str, Property]:
    """Return the properties that a role of these kinds may have; each other one is a finding.

    `owners` names the kind that a property belongs to, for those that do not suit every kind.
    """
    have = {kind.text for kind in kinds}
    fit: dict[str, Property] = {}
    for name, prop in props.items():
        owner = owners.get(name)
        if owner is None or owner in have or not have:
            fit[name] = prop
            continue
        message = f"`{name}` is a property of {owner} roles, but {what} is of kind " + ", ".join(
            f"`{shown(kind.text)}`" for kind in kinds
        )
        label = Label(span_of(kinds), "the kind is stated here")
        findings.error("GS009", message, prop.span, labels=(label,), helps=(f"delete `{shown(name)}`",))
    return fit


def span_of(words: Sequence[Word]) -> Span:
    """Return the span from the first word to the last."""
    return words[0].span.to(words[-1].span)
