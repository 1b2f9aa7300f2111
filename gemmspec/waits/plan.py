"""Numbers for what bounded waits write down: a row for each instance of a role, a site for each wait of the spec.

Given a Protocol and a time, return what the generator spells, the audit compares and the manifest lists. The device
function itself is wait.cu; docs/debugging.md says why the kernel can stop the way it does.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from string import Template

from gemmspec.protocol.elaborate import FIRST_NAMED_BARRIER
from gemmspec.protocol.program import BlockSync, Program, Protocol, Wait, WarpgroupSync
from gemmspec.protocol.tile import Tiling, base_of
from gemmspec.source import Span
from gemmspec.vocabulary import RoleKind

SYMBOL = "gemmspec_waits"
"""The array of the cubin that the records are in."""
LEAST_SECONDS, MOST_SECONDS = 1e-3, 3600.0
MAY_HANG_ELSEWHERE = ("GS121", "GS3", "GS4")
"""Errors with which a kernel may block outside of its waits: syncs in roles, warps and registers, shapes."""


class Waits:
    """How the waits of one Protocol are bounded. `seconds`: the longest that one may last."""

    def __init__(self, protocol: Protocol, seconds: float) -> None:
        self.protocol, self.seconds = protocol, seconds
        self._bases: dict[str, int] = {}
        self._sites: dict[int, int] = {}
        self.rows = 0
        """Instances of all roles in one CTA."""
        self.sites: list[tuple[Program, Wait]] = []
        for program in protocol.programs:
            self._bases[program.role.name] = self.rows
            self.rows += program.instances
            for statement in program.walk():
                if isinstance(statement, Wait):
                    self._sites[id(statement)] = len(self.sites)
                    self.sites.append((program, statement))

    def base(self, program: Program) -> int:
        """Return the row of a role's first instance."""
        return self._bases[program.role.name]

    def site(self, wait: Wait) -> int:
        """Return the number of a wait of this Protocol."""
        return self._sites[id(wait)]

    def agreement(self, program: Program) -> int | None:
        """Return the named barrier at which the threads of instance 0 agree (each later one has the next).

        It is that of the instance's stores: the same 128 threads, in the order of their program. None: one thread.
        """
        if program.threads == 1:
            return None
        return FIRST_NAMED_BARRIER + base_of(self.protocol.spec, program.role, RoleKind.EPILOGUE)

    def unbounded(self) -> tuple[str, Span] | None:
        """Return what in a role can block without end beside its waits, and where it is written; None for nothing."""
        for program in self.protocol.programs:
            for s in program.walk():
                if isinstance(s, BlockSync):
                    return f"`sync {s.scope}` of `{program.role.name}`", s.span
                if isinstance(s, WarpgroupSync) and program.threads == 1:
                    return f"`sync warpgroup` of `{program.role.name}`", s.span
        return None

    @cached_property
    def source(self) -> str:
        """The device function and its array, as CUDA text that begins on a line of its own."""
        text = "\n" + Path(__file__).with_name("wait.cu").read_text(encoding="utf-8")
        return Template(text).substitute(
            seconds=f"{self.seconds:g}",
            nanoseconds=f"{round(self.seconds * 1e9)}ull",
            rows=self.rows,
            records=self.rows * Tiling.of(self.protocol.spec).ctas,
        )
