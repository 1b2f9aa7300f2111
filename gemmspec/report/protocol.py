"""Given a Protocol, return the exact program of each role as text: what is proved, and what is built.

Every fence and sync that the generator places is there, every slot and parity as a formula over cursors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gemmspec.protocol import Protocol
from gemmspec.protocol.elaborate import FIRST_NAMED_BARRIER
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Add,
    Arrive,
    BlockSync,
    Branch,
    Commit,
    Cursor,
    Expect,
    Load,
    Loop,
    Mma,
    Program,
    ProxyFence,
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    Targets,
    TcgenFence,
    Wait,
    WarpgroupSync,
)


def protocol_text(protocol: Protocol) -> str:
    """Return all programs, with what stands before and after them."""
    lines = [f"start: initialise {sum(b.slots for b in protocol.barriers)} mbarriers, sync {protocol.start_sync}", ""]
    for program in protocol.programs:
        lines += [_title(protocol, program), *_Writer(protocol, program).body(program.body, "  "), ""]
    return "\n".join([*lines, f"end: sync {protocol.end_sync}"])


def _title(protocol: Protocol, program: Program) -> str:
    instances = f"{program.instances} instance" + ("s" if program.instances > 1 else "")
    threads = "one thread" if program.threads == 1 else f"{program.threads} threads"
    where = "the even CTA of each pair" if program.leader_only else "each CTA"
    cursors = ", ".join(f"{c.word} of {c.depth}" for c in program.cursors)
    return f"role {program.role.name}: {instances} of {threads} in {where}; cursors: {cursors or 'none'}"


class _Writer:
    """Writes the statements of one program."""

    def __init__(self, protocol: Protocol, program: Program) -> None:
        self.protocol = protocol
        self.instances = program.instances
        self.cursors: dict[int | None, Cursor] = {c.id: c for c in program.cursors}

    def body(self, body: tuple[Statement, ...], indent: str) -> Iterator[str]:
        for statement in body:
            match statement:
                case Loop():
                    yield indent + self._loop(statement)
                    yield from self.body(statement.body, indent + "  ")
                case Branch():
                    sign = "==" if statement.equal else "!="
                    yield f"{indent}if {statement.kind.value} {sign} {statement.which}:"
                    yield from self.body(statement.body, indent + "  ")
                case action:
                    yield indent + self._action(action)

    def _loop(self, loop: Loop) -> str:
        count = "" if loop.count is None else " (once)" if loop.count == 1 else f" ({loop.count} times)"
        offset = f" {'+' if loop.offset > 0 else '-'} {abs(loop.offset)}" if loop.offset else ""
        advances = ", ".join(self.cursors[c].word for c in loop.advances)
        return f"for each {loop.kind.value}{offset}{count}{f', then advance {advances}' if advances else ''}:"

    def _action(self, action: Action) -> str:
        match action:
            case Wait():
                return f"wait {action.barrier}[{self._slot(action.slot)}] parity {self._parity(action)}"
            case Arrive():
                times = f" {action.threads} times" if action.threads > 1 else ""
                return f"arrive {action.barrier}[{self._slot(action.slot)}]{times}{self._at(action.targets)}"
            case Expect():
                return f"arrive {action.barrier}[{self._slot(action.slot)}] and expect {action.bytes} bytes"
            case Commit():
                return f"commit {action.barrier}[{self._slot(action.slot)}]{self._at(action.targets)}"
            case Load():
                return self._load(action)
            case Mma():
                operands = f"A[{self._slot(action.a)}] x B[{self._slot(action.b)}]"
                return f"mma acc[{self._slot(action.acc)}] += {operands}"
            case Retire():
                return f"wgmma.wait_group {action.pending}"
            case AccRead():
                return f"tcgen05.ld a chunk of acc[{self._slot(action.acc)}]"
            case AccReadWait():
                return "tcgen05.wait::ld"
            case Send():
                to = self._slot(action.slot)
                return f"send the peers' shares of acc[{self._slot(action.acc)}] into their R[{to} ..]"
            case Add():
                parts = f"R[{self._slot(action.slot)} ..]" + (f" {action.parts} parts" if action.parts > 1 else "")
                return f"add {parts} to the own share of acc[{self._slot(action.acc)}]"
            case StoreWrite():
                return f"write the chunk to D[{self._slot(action.buffer)}]"
            case StoreIssue():
                return f"one thread: store D[{self._slot(action.buffer)}]"
            case StoreCommit():
                return "one thread: cp.async.bulk.commit_group"
            case StoreWait():
                return f"one thread: cp.async.bulk.wait_group.read {action.pending}"
            case ProxyFence():
                return "fence.proxy.async.shared::cta"
            case TcgenFence():
                return f"tcgen05.fence::{action.side.value}"
            case WarpgroupSync():
                own = action.barrier - FIRST_NAMED_BARRIER
                return f"bar.sync {FIRST_NAMED_BARRIER} + {f'{own} + ' if own else ''}self, 128"
            case BlockSync():
                return f"sync the {action.scope}"
            case _:
                assert_never(action)

    def _load(self, load: Load) -> str:
        what = f"{load.operand.value}[{self._slot(load.slot)}]" + (f" {load.count} tiles" if load.count > 1 else "")
        part = f", one of {load.parts} slices" if load.parts > 1 else ""
        barrier = f"{load.barrier}[{self._slot(load.barrier_slot)}]{self._at(load.signals)}"
        return f"load {what} {load.rows} rows {load.bytes} bytes{part}, count on {barrier}"

    def _slot(self, slot: Slot) -> str:
        terms: list[str] = []
        if slot.cursor is not None and slot.cursor_stride:
            word = self.cursors[slot.cursor].word
            if self.cursors[slot.cursor].depth > 1:
                back = f"{word} - {slot.lag}" if slot.lag else word
                terms.append(_times(slot.cursor_stride, f"({back})" if slot.lag and slot.cursor_stride > 1 else back))
        if slot.self_stride and self.instances > 1:
            terms.append(_times(slot.self_stride, "self"))
        if slot.const or not terms:
            terms.append(str(slot.const))
        return " + ".join(terms)

    def _parity(self, wait: Wait) -> str:
        cursor = self.cursors.get(wait.slot.cursor)
        return str(wait.phase) if cursor is None else f"{wait.phase} ^ wraps of {cursor.word}"

    def _at(self, targets: Targets) -> str:
        if self.protocol.spec.cluster.size == 1:
            return ""
        group = targets.named(self.protocol.spec.cluster, self.protocol.spec.pair)
        if group is not None:
            return f" at {group.value}"
        return f" at CTAs {', '.join(f'{mask:#b}' for mask in targets.masks)}"


def _times(stride: int, word: str) -> str:
    return word if stride == 1 else f"{stride} {word}"
