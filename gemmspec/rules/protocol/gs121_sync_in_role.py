"""GS121: a sync that only some of the threads that it waits for can reach."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.protocol import Protocol
from gemmspec.protocol.program import BlockSync, WarpgroupSync
from gemmspec.rules.rule import Finding, protocol_rule


@protocol_rule("GS121", "sync-in-role")
def sync_in_role(protocol: Protocol) -> Iterator[Finding]:
    """
    ## What it checks
    That no program contains a sync which some of the threads that it waits for can't reach: `sync cta` and `sync
    cluster` in any role, `sync warpgroup` in a role that runs as one thread.

    ## Why it matters
    The other roles are in their own loops and never come. (`__syncthreads` and `barrier.cluster` count threads, not
    roles.)

    ## On a GPU
    A hang at the first tile.

    ## Limits
    The syncs around the roles, after initialisation and before exit, are placed by the generator.
    """
    for program in protocol.programs:
        role = program.role.name
        for s in program.walk():
            if isinstance(s, BlockSync):
                yield Finding(
                    s.span,
                    f"`sync {s.scope}` waits for every thread of the {s.scope}, but only `{role}` runs it",
                    "the other roles never get here: a hang",
                    helps=("use a barrier, or `sync warpgroup` for the threads of one instance",),
                )
            elif isinstance(s, WarpgroupSync) and program.threads == 1:
                yield Finding(
                    s.span,
                    f"`sync warpgroup` waits for 128 threads, but `{role}` runs as 1 elected thread",
                    "the other 127 threads never get here: a hang",
                    helps=("leave it out: one thread needs no sync",),
                )
