"""Actions that only change what their own agent knows: fences, syncs, and waits for what it issued itself."""

from __future__ import annotations

from typing import Final

from gemmspec.proof.agents import Agent, Run, Step
from gemmspec.proof.clocks import raised
from gemmspec.protocol.program import (
    AccReadWait,
    Action,
    BlockSync,
    FenceSide,
    ProxyFence,
    Retire,
    StoreCommit,
    StoreWait,
    TcgenFence,
    WarpgroupSync,
)


def _retire(agent: Agent, step: Step, retire: Retire) -> None:
    agent.order += 1
    over = agent.mmas - retire.pending
    if over > 0:
        # A multiply of the warpgroup is over: all its warps have issued it, and so are past earlier waits.
        agent.clock = raised(agent.clock, agent.mma_stream, over)
        agent.clock = raised(agent.clock, agent.wait_stream, agent.mma_waits[over - 1])
        agent.version += 1


def _acc_read_wait(agent: Agent, step: Step, wait: AccReadWait) -> None:
    agent.order += 1
    agent.reads_done = agent.reads


def _store_commit(agent: Agent, step: Step, commit: StoreCommit) -> None:
    agent.order += 1
    agent.groups += agent.open_group
    agent.open_group = False


def _store_wait(agent: Agent, step: Step, wait: StoreWait) -> None:
    agent.order += 1
    agent.groups_done = max(agent.groups_done, agent.groups - wait.pending)
    agent.last_store_wait = agent.order


def _proxy_fence(agent: Agent, step: Step, fence: ProxyFence) -> None:
    agent.order += 1
    agent.last_fence = agent.order


def _warpgroup_sync(agent: Agent, step: Step, sync: WarpgroupSync) -> None:
    agent.order += 1
    agent.last_sync = agent.order
    if agent.wait_stream != agent.index:
        agent.clock = raised(agent.clock, agent.wait_stream, agent.waits)
        agent.clock = agent.with_moves(agent.clock)
        agent.version += 1


def _tcgen_fence(agent: Agent, step: Step, fence: TcgenFence) -> None:
    agent.order += 1
    if fence.side is FenceSide.AFTER:
        agent.tmem_clock = agent.clock
    elif agent.read_stream >= 0:
        agent.clock = raised(agent.clock, agent.read_stream, agent.reads_done)
        agent.version += 1


def _block_sync(agent: Agent, step: Step, sync: BlockSync) -> None:
    """Do nothing: a sync of the whole CTA in a role is rule GS121's business."""
    agent.order += 1


ORDERS: Final[dict[type[Action], Run]] = {
    Retire: _retire,
    AccReadWait: _acc_read_wait,
    StoreCommit: _store_commit,
    StoreWait: _store_wait,
    ProxyFence: _proxy_fence,
    WarpgroupSync: _warpgroup_sync,
    TcgenFence: _tcgen_fence,
    BlockSync: _block_sync,
}
"""What each of them does."""
