"""A kernel ready to be run, one warp at a time: what it does before the first sync of all threads, in its roles, and
from the last such sync on."""

from __future__ import annotations

from dataclasses import dataclass

from gemmspec.audit.cases import Case, Sampling
from gemmspec.audit.events import Done
from gemmspec.audit.ir import Const, Do, Ids, Kernel, Stmt, Var
from gemmspec.audit.machine import Machine
from gemmspec.audit.merge import merged
from gemmspec.audit.places import Places
from gemmspec.audit.terms import CLUSTER, CLUSTER_SIZE, GIVES_UP, RANK, UNREAD, WARP, WARPGROUP, Terms, Unfollowed
from gemmspec.audit.warp import Step, Warp
from gemmspec.protocol.program import Protocol
from gemmspec.waits import Waits

SYNCS = ("cuda.cta_sync", "cuda.cluster_sync")
GRID = "ptx.griddepcontrol"


@dataclass(frozen=True, slots=True)
class Deeds:
    """What one warp did, section by section.

    The prologue ends with its sync, or with the wait for the kernels before; the end begins with a sync.
    """

    prologue: list[Done]
    roles: list[Done]
    end: list[Done]


class Image:
    """One kernel's steps."""

    def __init__(self, kernel: Kernel, protocol: Protocol, waits: Waits | None = None) -> None:
        self.protocol, self.kernel, self.waits = protocol, kernel, waits
        self.places = Places(protocol, kernel)
        self.sizes: dict[str, int] = {}
        """Names of sizes known at run time -> their places."""
        self.terms = terms = Terms()
        self.warpgroups = max(r.placement.warpgroups[1] for r in protocol.spec.roles) + 1
        self._bind_sizes(terms)
        body = kernel.body
        syncs = [i for i, s in enumerate(body) if isinstance(s, Do) and s.op in SYNCS]
        self.syncs = tuple(_kind(body[i]) for i in syncs)
        """The syncs of all threads that stand outside of the roles."""
        first = syncs[0] + 1 if syncs else 0
        # A fence directly behind the sync belongs to it.
        while first < len(body) and isinstance(s := body[first], Do) and s.op == "ptx.tcgen05_fence":
            first += 1
        grids = [i for i, s in enumerate(body) if isinstance(s, Do) and s.op == GRID and s.mods == ("wait",)]
        first = max(first, grids[0] + 1) if grids else first
        last = syncs[-1] if len(syncs) > 1 else len(body)
        machine = Machine(terms, self.places, waits)
        self._sections = tuple(machine.steps(part) for part in (body[:first], body[first:last], body[last:]))
        self._start = [0] * terms.count
        filled = (machine.effects.reads, machine.effects.wgmma.accumulators)
        for place in (*machine.effects.registers, *(p for r in filled for pair in r.coming.items() for p in pair)):
            self._start[place] = UNREAD
        self._known: dict[tuple[int, ...], int] = {}

    def run(self, rank: int, warpgroup: int, warp: int, case: Case, trips: Sampling, gives_up: int = -1) -> Deeds:
        """Return what one warp of one CTA does in a case. `gives_up`: the waits after which a bounded one gives up."""
        v = self._start.copy()
        size = self.protocol.spec.cluster.size
        v[RANK], v[WARPGROUP], v[WARP] = rank, warpgroup, warp
        v[CLUSTER], v[CLUSTER_SIZE], v[GIVES_UP] = case.cluster, size, gives_up
        for name, place in self.sizes.items():
            v[place] = {"M": case.m, "N": case.n, "K": case.k}[name]
        worker = Warp(v, max(case.tiles, 1), trips, known=self._known)
        return Deeds(*(self._done(worker, section) for section in self._sections))

    def ids(self) -> dict[int, int]:
        """Return the extents of scope ids: TVM's number of the scope -> their product."""
        out: dict[int, int] = {}
        for s in self.kernel.body:
            if isinstance(s, Ids):
                out[s.scope] = 1
                for extent in s.extents:
                    out[s.scope] *= extent.value if isinstance(extent, Const) else 0
        return out

    def _done(self, worker: Warp, section: tuple[Step, ...]) -> list[Done]:
        return merged(worker.run(section), self.protocol.spec.cluster.size)

    def _bind_sizes(self, terms: Terms) -> None:
        dimensions = {"A": "MK", "B": "NK", "D": "MN"}
        for tensor in self.kernel.params:
            matrix = self.places.matrices.get(tensor.key)
            for size, extent in zip(dimensions.get(matrix or "", ""), tensor.shape, strict=False):
                if isinstance(extent, Var):
                    self.sizes[size] = terms.place(extent.key)


def _kind(statement: Stmt) -> str:
    if not isinstance(statement, Do):
        raise Unfollowed("a sync")
    return "cluster" if statement.op == "cuda.cluster_sync" else "cta"
