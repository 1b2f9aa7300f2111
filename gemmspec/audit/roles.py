"""Every role of every CTA, and every warp that has none, through all cases."""

from __future__ import annotations

from gemmspec.audit.cases import Case, cases_of, sampling
from gemmspec.audit.compare import Mismatch, compare
from gemmspec.audit.difference import Difference
from gemmspec.audit.ends import Warps
from gemmspec.audit.events import FULL, Done, Event, describe
from gemmspec.audit.expected import Expectation, Expected
from gemmspec.audit.image import Deeds, Image
from gemmspec.audit.merge import together
from gemmspec.model.spec import WARPGROUP_THREADS
from gemmspec.protocol.program import Program, Wait

WARPS = range(4)
"""Warps of a warpgroup."""

_Warp = tuple[int, int]


class Roles:
    """Runs the warps of one cluster."""

    def __init__(self, image: Image) -> None:
        self.image, self.protocol = image, image.protocol
        self.spec = image.protocol.spec
        self.cases = cases_of(image.protocol)
        self.owner = {w: p for p in self.protocol.programs for w in p.role.placement.claimed}
        self.registers = self._registers()
        all_warps = [(group, warp) for group in range(image.warpgroups) for warp in WARPS]
        self.done: list[Warps] = [
            {w: self._run(rank, w, self.cases[0]) for w in all_warps} for rank in range(self.spec.cluster.size)
        ]
        """What every warp of each CTA does in the first case."""
        self.out: list[Difference] = []
        self.told: set[str] = set()
        """Roles of which a difference has been found: what follows one tells nothing new."""

    def differences(self) -> list[Difference]:
        """Return what differs in the roles, the first of each."""
        for case in self.cases:
            for rank in range(self.spec.cluster.size):
                at_work: set[_Warp] = set()
                for program in self.protocol.programs:
                    if program.leader_only and rank % self.spec.pair:
                        continue
                    for instance in range(program.instances):
                        warps = instance_warps(program, instance)
                        at_work.update(warps)
                        self._instance(case, rank, program, instance, warps)
                if case is self.cases[0]:
                    for w, deeds in self.done[rank].items():
                        if w not in at_work:
                            self._idle(rank, w, deeds.roles)
        return self.out

    def _run(self, rank: int, w: _Warp, case: Case, gives_up: int = -1) -> Deeds:
        trips = sampling(self.owner.get(w), case is self.cases[0])
        return self.image.run(rank, *w, case, trips, gives_up)

    def _followed(self, rank: int, warps: list[_Warp]) -> list[_Warp]:
        """Return a warp of an instance, and those of it in which single threads act: the others do as the first."""
        roles = {w: self.done[rank][w].roles for w in warps}
        return [w for w in warps if w == warps[0] or any(lanes != FULL for _, lanes in roles[w])]

    def _instance(self, case: Case, rank: int, program: Program, instance: int, warps: list[_Warp]) -> None:
        name, first = program.role.name, case is self.cases[0]
        if name in self.told:
            return
        where = f"{name} {instance}, CTA {rank}" if program.instances > 1 else f"{name}, CTA {rank}"
        followed = warps if first else self._followed(rank, warps)
        deeds = [self.done[rank][w] if first else self._run(rank, w, case) for w in followed]
        rest = [self._after_registers(where, name, w, d.roles) for w, d in zip(followed, deeds, strict=True)]
        trips = sampling(program, first)
        expected = together(Expectation(self.protocol, program, rank, instance, case, trips, self.image.waits).events())
        mismatch = compare(expected, rest, len(warps), program.threads == 1)
        if mismatch is not None:
            self._differs(name, where, case, mismatch)
        elif first and self.image.waits is not None:
            self._giving_up(rank, program, where, warps, expected)

    def _differs(self, name: str, where: str, case: Case, mismatch: Mismatch) -> None:
        if name not in self.told:
            self.told.add(name)
            at = f"{where}, {mismatch.place}" if mismatch.place else where
            self.out.append(Difference(f"{at} ({case.text})", mismatch.expected, mismatch.found, mismatch.span))

    def _giving_up(self, rank: int, program: Program, where: str, warps: list[_Warp], expected: list[Expected]) -> None:
        """Check that nothing is done behind a bounded wait that gives up: each wait of the first trips, in turn."""
        name, case = program.role.name, self.cases[0]
        waits = [i for i, e in enumerate(expected) if e.event.verb == "wait"]
        sites = sum(isinstance(s, Wait) for s in program.walk())
        for passed, last in enumerate(waits[: 3 * sites]):
            deeds = [self._run(rank, w, case, passed).roles for w in warps]
            rest = [self._after_registers(where, name, w, done) for w, done in zip(warps, deeds, strict=True)]
            mismatch = compare(expected[: last + 1], rest, len(warps), program.threads == 1)
            if mismatch is not None:
                self._differs(name, f"{where}, having given up wait {passed}", case, mismatch)
                return

    def _idle(self, rank: int, w: _Warp, done: list[Done]) -> None:
        """Check that a warp without a role in this CTA does nothing."""
        where = f"warp {w[1]} of warpgroup {w[0]}, CTA {rank}"
        owner = self.owner.get(w)
        name = f"idle warp of {owner.role.name}" if owner else f"idle warp {w}"
        rest = self._after_registers(where, name, w, done)
        if rest and name not in self.told:
            self.told.add(name)
            span = owner.role.placement.span if owner else None
            self.out.append(Difference(where, "nothing: no role runs there", describe(rest[0][0]), span))

    def _after_registers(self, where: str, name: str, w: _Warp, done: list[Done]) -> list[Done]:
        """Return what a warp does behind its request for registers, having checked that."""
        asked = self.registers.get(w[0])
        if asked is None:
            return done
        wanted, role = asked
        if done and done[0] == (wanted, FULL):
            return done[1:]
        if f"{name} registers" not in self.told:
            self.told.update((name, f"{name} registers"))
            found = describe(done[0][0]) if done else "nothing"
            span = role.role.registers.span if role.role.registers else None
            self.out.append(Difference(where, f"{describe(wanted)}, by a whole warp", found, span))
        return done

    def _registers(self) -> dict[int, tuple[Event, Program]]:
        """Return what each warpgroup asks for."""
        share = self.spec.target.launch_registers(self.image.warpgroups * WARPGROUP_THREADS)
        out: dict[int, tuple[Event, Program]] = {}
        for program in self.protocol.programs:
            if program.role.registers is not None:
                number = program.role.registers.value
                event = Event("registers", ("inc" if number > share else "dec",), (number,))
                out |= {group: (event, program) for group, _ in program.role.placement.claimed}
        return out


def instance_warps(program: Program, instance: int) -> list[_Warp]:
    """Return the warps that run an instance of a role."""
    placement = program.role.placement
    if program.threads > 1:
        return [(placement.warpgroups[0] + instance, w) for w in WARPS]
    if placement.warps is not None:
        return [(placement.warpgroups[0], placement.warps[0] + instance)]
    return [(placement.warpgroups[0] + instance, 0)]
