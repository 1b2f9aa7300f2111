"""One role: its condition, its cursors, and its program, statement by statement."""

from __future__ import annotations

from typing import assert_never

from gemmspec.codegen import exchange
from gemmspec.codegen.copies import load, store_issue
from gemmspec.codegen.kernel import Kernel, fixed, runs_in
from gemmspec.codegen.ranks import RANK
from gemmspec.codegen.scope import Cursors, Inside, Scope
from gemmspec.codegen.tensor import Blackwell, Hopper
from gemmspec.codegen.words import bare, both, product, total
from gemmspec.codegen.writer import Block
from gemmspec.model.spec import Role
from gemmspec.protocol.derive import expects_in
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Add,
    Arrive,
    BlockSync,
    Branch,
    Commit,
    Expect,
    FenceSide,
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
    walk,
)
from gemmspec.protocol.tile import base_of
from gemmspec.vocabulary import LoopKind, RoleKind

GOING_ON = "past >= 0"
"""Whether no wait of the instance has given up, where waits are bounded."""
ONE_THREAD = "(warp_id == 0) & (lane_id == 0)"


class RoleText:
    """Writes one program."""

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel, self.program, self.role = kernel, program, program.role
        self.ranks = runs_in(kernel, program)
        self.cursors = Cursors(kernel, program)
        self.me = _instance(self.role, program)
        self.consumer = base_of(kernel.spec, self.role, RoleKind.MMA)
        # The accumulator that an epilogue instance stores is that of the consumer with its number.
        reads = self.consumer if self.role.does(RoleKind.MMA) else base_of(kernel.spec, self.role, RoleKind.EPILOGUE)
        self.held = total(self.me, str(reads))
        """The consumer whose chunk is in the registers."""
        self.tensor = (Blackwell if kernel.spec.target.has_tmem else Hopper)(self)

    def write(self, block: Block) -> None:
        """Write the program into the block of its role."""
        block.first.extend(self.cursors.declarations())
        if self._may_give_up(self.program.body):
            block.first.append("past: T.int32 = 0")
        self.tensor.declare(block)
        if any(isinstance(s, Send | Add) or self._exchanges(s) for s in self.program.walk()):
            exchange.declare(block)
        scope = Scope(block)
        body = block.block("if T.cuda.elect_sync()") if self.program.threads == 1 else block
        self._statements(self.program.body, body, scope)

    def warpgroups(self, count: int) -> tuple[str, ...]:
        """Return the conditions that a thread is in the role's warpgroups, in a CTA of so many."""
        return self._within("wg_id", self.role.placement.warpgroups, count - 1)

    def warps(self) -> tuple[str, ...]:
        """Return what else makes a thread of these warpgroups one of the role's."""
        warps = self.role.placement.warps or ((0, 0) if self.program.threads == 1 else (0, 3))
        leaders = self.kernel.ranks.where(self.ranks.ranks) if self.program.leader_only else None
        return (*self._within("warp_id", warps, 3), *([leaders] if leaders else []))

    def _within(self, name: str, bounds: tuple[int, int], last: int) -> tuple[str, ...]:
        """Return the conditions that an id is in bounds; none where it always is."""
        low, high = bounds
        if low == high:
            return () if last == 0 else (f"{name} == {low}",)
        above = () if low == 0 else (f"{name} >= {low}",)
        below = () if high == last else (f"{name} < {self.kernel.instances(self.role, high + 1)}",)
        return (*above, *below)

    # -- statements --------------------------------------------------------------------------------------------

    def _statements(self, body: tuple[Statement, ...], block: Block, scope: Scope) -> None:
        """Write statements; those of one thread in a row share their condition."""
        alone: Block | None = None
        rest = list(body)
        while rest:
            statement = rest.pop(0)
            if self.program.threads > 1 and self._by_one_thread(statement):
                alone = alone or block.block(f"if {ONE_THREAD}")
            else:
                alone = None
            if isinstance(statement, Load):
                alike = [statement]
                while rest and _continues(alike[-1], rest[0]):
                    alike.append(rest.pop(0))  # pyright: ignore[reportArgumentType]
                load(self, alike, alone or block, scope)
            else:
                self._statement(statement, alone or block, scope)
            if rest and self._may_give_up((statement,)):
                block, alone = block.block(f"if {GOING_ON}"), None

    def _may_give_up(self, body: tuple[Statement, ...]) -> bool:
        """Say whether a wait in a body may give up: nothing that follows it is done then."""
        return self.kernel.waits is not None and any(isinstance(s, Wait) for s in walk(body))

    def _exchanges(self, statement: Statement) -> bool:
        """Say whether a statement arrives on a barrier of an exchange."""
        return isinstance(statement, Arrive) and self.kernel.protocol.barrier(statement.barrier).exchange

    def _by_one_thread(self, statement: Statement) -> bool:
        """Say whether one thread of a warpgroup acts for all."""
        match statement:
            case Load() | Expect() | Commit() | StoreIssue() | StoreCommit() | StoreWait():
                return True
            case Mma():
                return self.kernel.spec.target.has_tmem
            case Arrive(threads=threads):
                return threads == 1 and self._one_target(statement) and not self._exchanges(statement)
            case _:
                return False

    def _statement(self, statement: Statement, block: Block, scope: Scope) -> None:
        match statement:
            case Loop():
                self._loop(statement, block, scope)
            case Branch():
                self._statements(statement.body, block.block(f"if {self._condition(statement, scope)}"), scope)
            case action:
                self._action(action, block, scope)

    def _loop(self, loop: Loop, block: Block, scope: Scope) -> None:
        index, trips = self._index(loop), self._trips(loop)
        may_give_up = self._may_give_up(loop.body)
        match loop.kind:
            case LoopKind.TILE:
                body = block.block(f"while {both('tiles.valid()', GOING_ON if may_give_up else None)}")
            case LoopKind.K:
                body = block.block(f"for {index} in range({trips})")
            case LoopKind.CHUNK if trips == "1":
                body, index = block, "0"
            case LoopKind.CHUNK:
                body = block.block(f"for {index} in T.unroll({trips})")
            case LoopKind.FIXED:
                body = block.block(f"for {index} in range({trips})")
            case _:
                assert_never(loop.kind)
        # A trip begins with nothing done yet: the loop over tiles sees to it by its own condition.
        guarded = body.block(f"if {GOING_ON}") if may_give_up and loop.kind is not LoopKind.TILE else body
        self._statements(loop.body, guarded, scope.enter(Inside(loop.kind, index, trips, body)))
        for advance in self.cursors.advances(loop):
            body.line(advance)
        if loop.kind is LoopKind.TILE:
            body.line("tiles.next_tile()")

    def _index(self, loop: Loop) -> str:
        match loop.kind:
            case LoopKind.TILE:
                return "tiles.tile_count"
            case LoopKind.K:
                return "k"
            case LoopKind.CHUNK:
                return "c"
            case LoopKind.FIXED:
                return "_"
            case _:
                assert_never(loop.kind)

    def _trips(self, loop: Loop) -> str:
        match loop.kind:
            case LoopKind.TILE:
                return ""
            case LoopKind.K:
                return "K_TILES" + (f" {'-' if loop.offset < 0 else '+'} {abs(loop.offset)}" if loop.offset else "")
            case LoopKind.CHUNK:
                return "CHUNKS" if loop.count == self.kernel.tiling.chunks > 1 else str(loop.count)
            case LoopKind.FIXED:
                return str(loop.count)
            case _:
                assert_never(loop.kind)

    def _condition(self, branch: Branch, scope: Scope) -> str:
        last = total(scope.trips(branch.kind), "0") + " - 1"
        which = "0" if branch.which == "first" else last
        return f"{scope.index(branch.kind)} {'==' if branch.equal else '!='} {which}"

    def _action(self, action: Action, block: Block, scope: Scope) -> None:
        match action:
            case Wait():
                self._wait(action, block, scope)
            case Arrive():
                self._arrive(action, block, scope)
            case Expect():
                self._expect(action, block, scope)
            case Commit():
                self._commit(action, block, scope)
            case Load():
                load(self, [action], block, scope)
            case StoreIssue():
                store_issue(self, action, block, scope)
            case Mma():
                self.tensor.mma(action, block, scope)
            case Retire():
                block.line(f"T.ptx.wgmma.wait_group.sync.aligned({action.pending})")
            case AccRead():
                self.tensor.acc_read(action, block, scope)
            case AccReadWait():
                block.line("T.ptx.tcgen05.wait__ld.sync.aligned()")
            case Send():
                exchange.send(self, action, block, scope)
            case Add():
                exchange.add(self, action, block, scope)
            case StoreWrite():
                self.tensor.store_write(action, block, scope)
            case StoreCommit():
                block.line("T.ptx.cp.async_.bulk.commit_group()")
            case StoreWait():
                block.line(f"T.ptx.cp.async_.bulk.wait_group.read({action.pending})")
            case ProxyFence():
                block.line("T.ptx.fence.proxy.async_.shared__cta()")
            case TcgenFence(side=side):
                name = "before_thread_sync" if side is FenceSide.BEFORE else "after_thread_sync"
                block.line(f"T.ptx.tcgen05.fence__{name}()")
            case WarpgroupSync():
                block.line(f"T.cuda.warpgroup_sync({self._named_barrier(action.barrier)})")
            case BlockSync():
                block.line(f"T.cuda.{action.scope}_sync()")
            case _:
                assert_never(action)

    # -- barriers ----------------------------------------------------------------------------------------------

    def slot(self, barrier: str, slot: Slot, scope: Scope) -> str:
        """Return the slot of a barrier."""
        plan = self.kernel.protocol.barrier(barrier)
        return bare(total(
            product(self.me, "0" if not slot.self_stride else self.kernel.stride(plan, slot.self_stride)),
            product(self.cursors.position(slot, scope), self.kernel.stride(plan, slot.cursor_stride or 1)),
            str(slot.const),
        ))  # fmt: skip

    def _wait(self, wait: Wait, block: Block, scope: Scope) -> None:
        name, slot = self.kernel.barriers[wait.barrier], self.slot(wait.barrier, wait.slot, scope)
        parity, waits = self.cursors.parity(wait), self.kernel.waits
        if waits is None:
            if self.kernel.protocol.barrier(wait.barrier).exchange:
                exchange.wait(self, wait.barrier, slot, parity, block)
            else:
                block.call(f"{name}.wait", slot, parity)
            return
        row, named = total(self.me, str(waits.base(self.program))), waits.agreement(self.program)
        where = (row, str(waits.site(wait)), scope.index(LoopKind.TILE), scope.index(LoopKind.K))
        agree = "-1" if named is None else self._named_barrier(named)
        block.call("past = wait", name, slot, parity, "past", *where, agree)

    def _one_target(self, arrive: Arrive) -> bool:
        return all(arrive.targets.masks[r].bit_count() == 1 for r in self.ranks.ranks)

    def _arrive(self, arrive: Arrive, block: Block, scope: Scope) -> None:
        name, slot = self.kernel.barriers[arrive.barrier], self.slot(arrive.barrier, arrive.slot, scope)
        if self._exchanges(arrive):
            exchange.arrive(self, arrive, slot, block)
            return
        if self._one_target(arrive):
            block.call(f"{self.kernel.view(arrive.barrier, arrive.targets.masks)}.arrive", slot)
            return
        every = self._reaches_all(arrive.targets)
        if self.program.threads > 1 and arrive.threads == 1:
            # One thread a target: lane r tells CTA r.
            mask = "" if every else scope.name("peers", self.ranks.mask(arrive.targets.masks))
            chosen = "lane_id < CLUSTER" if every else f"({mask} >> lane_id) & 1 == 1"
            block.block(f"if {both('warp_id == 0', chosen)}").call(f"{name}.arrive", slot, "remote=lane_id")
            return
        for rank in range(self.kernel.spec.cluster.size):
            where = [r for r in self.ranks.ranks if arrive.targets.masks[r] >> rank & 1]
            condition = self.ranks.where(where)
            if where:
                body = block.block(f"if {condition}") if condition else block
                body.call(f"{name}.arrive", slot, f"remote={rank}")

    def _reaches_all(self, targets: Targets) -> bool:
        everyone = (1 << self.kernel.spec.cluster.size) - 1
        return all(targets.masks[r] == everyone for r in self.ranks.ranks)

    def _expect(self, expect: Expect, block: Block, scope: Scope) -> None:
        plan = self.kernel.protocol.barrier(expect.barrier)
        where = self.ranks.where(r for r in self.ranks.ranks if expects_in(plan, r))
        slot, size = self.slot(expect.barrier, expect.slot, scope), self.kernel.bytes(expect.bytes)
        body = block.block(f"if {where}") if where else block
        body.call(f"{self.kernel.barriers[expect.barrier]}.arrive", slot, size)

    def _commit(self, commit: Commit, block: Block, scope: Scope) -> None:
        kernel, masks = self.kernel, commit.targets.masks
        name, slot = kernel.barriers[commit.barrier], self.slot(commit.barrier, commit.slot, scope)
        own = all(masks[r] == 1 << r for r in self.ranks.ranks)
        group = ["cta_group=CTA_GROUP"] if kernel.spec.paired else []
        mask = "" if own else scope.name("peers", self.ranks.mask(masks))
        if kernel.barrier_class(kernel.protocol.barrier(commit.barrier)) == "TCGen05Bar":
            if own:
                block.call(f"{name}.arrive", slot, *group)
                return
            if any(masks[r].bit_count() > 1 for r in self.ranks.ranks):
                block.call(f"{name}.arrive", slot, *group, f"cta_mask={mask}")
                return
        # What TCGen05Bar does not spell: a commit to one other CTA, or on a barrier with arrivals of other kinds.
        form = f"tcgen05.commit.cta_group::{kernel.spec.pair}.mbarrier::arrive::one.shared::cluster"
        many = [] if own else [f"T.uint16({mask})" if RANK not in mask else f'T.cast({mask}, "uint16")']
        form += ".b64" if own else ".multicast::cluster.b64"
        block.call(f'T.ptx["{form}"]', f"{name}.ptr_to([{slot}])", *many)

    def _named_barrier(self, barrier: int) -> str:
        """Return the named barrier of an instance; `barrier`: that of the first."""
        if self.program.instances == 1:
            return str(barrier)
        return total("wg_id", str(barrier - self.role.placement.warpgroups[0]))

    def part(self, slot: Slot, stride: int) -> str:
        """Return `const + self` of a slot in units of `stride`."""
        return fixed(slot, self.me, stride)


def _instance(role: Role, program: Program) -> str:
    """Return which instance of the role a thread belongs to."""
    if program.instances == 1:
        return "0"
    placement = role.placement
    name, first = ("warp_id", placement.warps[0]) if placement.warps else ("wg_id", placement.warpgroups[0])
    return name if first == 0 else f"({name} - {first})"


def _continues(before: Load, after: Statement) -> bool:
    """Say whether a load is that of the next consumer's A tile, and else the same."""
    if not isinstance(after, Load) or after.first != before.first + before.count:
        return False
    step = after.slot.const - before.slot.const
    same = ("operand", "count", "rows", "bytes", "parts", "barrier", "barrier_slot", "writes", "signals")
    slots = ("self_stride", "cursor_stride", "cursor", "lag")
    return (
        step == before.count
        and all(getattr(before, n) == getattr(after, n) for n in same)
        and all(getattr(before.slot, n) == getattr(after.slot, n) for n in slots)
    )
