"""Programs as lines, and the single changes that bring one program closer to another."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from gemmspec.model.spec import Act, For, If, Ref, Spec, Step, Term
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind, Operand

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """A statement, the head of a block, or its end. `key`: equal for lines that say the same."""

    key: tuple[object, ...]
    text: str
    span: Span
    barrier: str | None = None

    @property
    def plain(self) -> bool:
        """Whether it is a statement, which stands or falls alone."""
        return not self.text.endswith(("{", "}"))

    @staticmethod
    def cut(text: str, span: Span) -> str | None:
        """Return a text without the line that a span stands on, comment and all; None if more stands there."""
        start, end = _bounds(text, span)
        if text[start : span.start].strip() or text[span.end : end].partition("#")[0].strip() not in ("", "{"):
            return None
        return text[:start] + text[end:]


@dataclass(frozen=True, slots=True)
class Change:
    """What one step makes of the whole text. `adds`: the barrier that an added statement names."""

    title: str
    text: str
    adds: str | None = None


def lines_of(spec: Spec, steps: tuple[Step, ...]) -> list[Line]:
    """Return the lines of a program."""
    out: list[Line] = []
    for step in steps:
        match step:
            case For():
                over = str(step.count) if step.kind is LoopKind.FIXED else step.kind.value
                lag = f" {'+' if step.offset > 0 else '-'} {abs(step.offset)}" if step.offset else ""
                out.append(Line(("for", over, lag), f"for {over}{lag} {{", step.head))
                out += lines_of(spec, step.body)
                out.append(Line(("end", "for", over), "}", Span(step.span.end - 1, step.span.end)))
            case If():
                head = f"{step.kind.value} {'==' if step.equal else '!='} {step.which}"
                out.append(Line(("if", head), f"if {head} {{", step.head))
                out += lines_of(spec, step.body)
                out.append(Line(("end", "if", head), "}", Span(step.span.end - 1, step.span.end)))
            case Act():
                out.append(Line(_key(step), _act(spec, step), step.span, step.ref.barrier if step.ref else None))
    return out


def differences(text: str, have: list[Line], want: list[Line]) -> Iterator[Change]:
    """Yield single changes towards `want`: additions, moves, loops, deletions, then what takes several lines."""
    codes = difflib.SequenceMatcher(None, [h.key for h in have], [w.key for w in want], autojunk=False).get_opcodes()
    codes = [code for code in codes if code[0] != "equal"]
    missing = [(i, want[n]) for _, i, _, low, high in codes for n in range(low, high)]
    extra = [have[n] for _, i, j, _, _ in codes for n in range(i, j)]
    for place, line in missing:
        if line.plain and not any(e.key == line.key for e in extra):
            added = _add(text, have, place, [line])
            if added:
                yield Change(f"add `{line.text}` {_after(text, have, place)}", added, line.barrier)
    for place, line in missing:
        for old in extra:
            if line.plain and old.key == line.key:
                moved = _move(text, have, place, old)
                if moved:
                    yield Change(f"move `{line.text}` {_after(text, have, place)}", moved)
    for old, new in zip(_heads(extra), _heads([line for _, line in missing]), strict=False):
        words = _words(new)
        yield Change(f"write `{words}`", text[: old.span.start] + words + text[old.span.end :])
    for old in extra:
        if old.plain:
            shorter = _without(text, have, old)
            if shorter:
                yield Change(f"delete `{old.text}`", shorter)
    # From the end, so that places ahead of a change stay what they are.
    whole: str | None = text
    for _, i, j, low, high in reversed(codes):
        if j - i + high - low > 1 and _closed(have[i:j]) and _closed(want[low:high]):
            changed = _replace(text, have, i, j, want[low:high])
            if changed:
                yield Change(f"write {_quoted(want[low:high])} in place of {_quoted(have[i:j])}", changed)
        whole = whole and _replace(whole, have, i, j, want[low:high])
    if whole and len(codes) > 1:
        yield Change("write the standard steps", whole)


def _after(text: str, have: list[Line], place: int) -> str:
    """Return the words for the place ahead of the line with that number."""
    if place == 0:
        return "at the beginning"
    before = have[place - 1]
    number = text.count("\n", 0, before.span.start) + 1
    return f"after line {number}" + ("" if before.text == "}" else f", `{_words(before)}`")


def _heads(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.key[0] == "for"]


def _words(line: Line) -> str:
    return line.text.removesuffix("{").rstrip()


def _add(text: str, have: list[Line], place: int, new: list[Line]) -> str | None:
    """Return the text with lines ahead of the line with that number; None where that one shares its line."""
    if place >= len(have):
        return None
    start, _ = _bounds(text, have[place].span)
    indent = text[start : have[place].span.start]
    if indent.strip():
        return None
    depth = 1 if have[place].text == "}" else 0
    added = ""
    for line in new:
        depth -= line.text == "}"
        added += f"{indent}{INDENT * depth}{line.text}\n"
        depth += line.text.endswith("{")
    return text[:start] + added + text[start:]


def _replace(text: str, have: list[Line], i: int, j: int, new: list[Line]) -> str | None:
    """Return the text with lines i..j-1 of a program replaced by others."""
    text_then = _add(text, have, i, new) if new else text
    if text_then is None:
        return None
    shift = len(text_then) - len(text)
    for old in reversed(have[i:j]):
        text_then = Line.cut(text_then, Span(old.span.start + shift, old.span.end + shift))
        if text_then is None:
            return None
    return text_then


def _closed(lines: list[Line]) -> bool:
    """Say whether each block that begins among the lines ends there, and no other does."""
    depth = 0
    for line in lines:
        depth += line.text.endswith("{") - (line.text == "}")
        if depth < 0:
            return False
    return depth == 0


def _quoted(lines: list[Line]) -> str:
    words = [f"`{_words(line)}`" for line in lines if line.text != "}"]
    return ", ".join(words) or "nothing"


def _move(text: str, have: list[Line], place: int, old: Line) -> str | None:
    """Return the text with a statement, and its comment, ahead of the line with that number."""
    if place >= len(have) or have[place] is old:
        return None
    at, _ = _bounds(text, have[place].span)
    _, end = _bounds(text, old.span)
    indent = text[at : have[place].span.start]
    shorter = _without(text, have, old)
    if shorter is None or indent.strip() or any(have[place] is line for line in _alone(have, old)):
        return None
    depth = 1 if have[place].text == "}" else 0
    line = indent + INDENT * depth + text[old.span.start : end]
    for gone in _alone(have, old):
        start, stop = _bounds(text, gone.span)
        at -= stop - start if stop <= _bounds(text, have[place].span)[0] else 0
    return shorter[:at] + line + shorter[at:]


def _without(text: str, have: list[Line], old: Line) -> str | None:
    """Return the text without a statement, and without the `if` that would be left empty."""
    shorter: str | None = text
    for line in reversed(_alone(have, old)):
        shorter = shorter and Line.cut(shorter, line.span)
    return shorter


def _alone(have: list[Line], old: Line) -> list[Line]:
    """Return a statement, together with the `if` around it where it stands in one by itself."""
    i = next(i for i, line in enumerate(have) if line is old)
    around = have[max(i - 1, 0) : i + 2]
    return around if len(around) == 3 and around[0].key[0] == "if" and around[2].text == "}" else [old]


def _bounds(text: str, span: Span) -> tuple[int, int]:
    """Return where the line that a span begins on starts and ends, its line end included."""
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.start) + 1
    return start, end or len(text)


def _key(act: Act) -> tuple[object, ...]:
    ref = act.ref
    index = tuple((t.kind, t.value, t.lag) for t in ref.index) if ref else ()
    stage = (act.stage.kind, act.stage.lag) if act.stage else ("cursor", 0)
    number = act.number if act.verb == "retire" else None
    operands = act.operands if act.operands and len(act.operands) < len(Operand) else ()
    return (act.verb, ref.barrier if ref else "", index, operands, act.instance, stage, act.owner, number, act.scope)


def _act(spec: Spec, act: Act) -> str:
    """Return a statement as a user would write it. Standard programs say nothing else."""
    words = [act.verb]
    if act.ref is not None:
        words.append(_ref(spec, act.ref))
    if act.verb == "retire":
        words.append(str(act.number or 0))
    return " ".join(words)


def _ref(spec: Spec, ref: Ref) -> str:
    factors = spec.barrier(ref.barrier).factors
    if all(term.kind == "const" for term in ref.index):
        return ref.barrier
    words = (
        _term(term, "acc" if f.text == "accumulators" else "stage") for term, f in zip(ref.index, factors, strict=True)
    )
    return f"{ref.barrier}[{', '.join(words)}]"


def _term(term: Term, word: str) -> str:
    if term.kind == "self":
        return "self"
    if term.kind == "const":
        return str(term.value)
    return f"{word} - {term.lag}" if term.lag else word
