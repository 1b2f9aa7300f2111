"""GS504: stages that are never all in use."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix, Label, Severity
from gemmspec.proof.flight import most_in_flight
from gemmspec.protocol import Protocol
from gemmspec.protocol.memory import smem_bytes, with_stages
from gemmspec.protocol.tile import Tiling, waves_of
from gemmspec.rules.rule import Finding, protocol_rule
from gemmspec.rules.units import count, kib


@protocol_rule("GS504", "idle-stages", Severity.ADVICE)
def idle_stages(protocol: Protocol) -> Iterator[Finding]:
    """
    ## What it checks
    That there is a moment at which all stages hold data: loaded or being loaded, and not yet multiplied. The
    producer is taken to be as fast as its waits allow, and the MMA as slow.

    ## Why it matters
    A stage that is never in use takes shared memory which a wider chunk or a second store buffer could have. Often
    it is a sign that the producer waits for something that it need not wait for.

    ## Limits
    Knows the number of k tiles and of tiles only where the sizes are fixed. Says nothing of how many stages it
    takes to hide the latency of memory.
    """
    spec = protocol.spec
    tiling, stages = Tiling.of(spec), spec.stages
    waves = waves_of(spec, tiling)
    depth = spec.sizes[2].fixed
    k_tiles = tiling.k_tiles(depth) if depth is not None else None
    most = most_in_flight(protocol, k_tiles, waves)
    if not 0 < most < stages.value:
        return
    freed = smem_bytes(spec) - smem_bytes(with_stages(spec, most))
    narrow = [p for p in protocol.barriers if p.per_k and p.slots == most]
    labels = [Label(p.barrier.slots_span, count(p.slots, "slot")) for p in narrow]
    notes = [f"the others take {kib(freed)} of shared memory"]
    if k_tiles is not None and waves is not None and k_tiles * waves == most:
        labels.append(Label(spec.sizes[2].span, count(k_tiles, "k tile")))
        notes.insert(0, f"a cluster has {count(waves, 'tile')} of {count(k_tiles, 'k tile')}, and then ends")
    fix = None
    if all(f.text in ("stages", "1") for p in protocol.barriers if p.per_k for f in p.barrier.factors):
        fix = Fix(f"write `stages {most}`", (Edit(stages.span, f"stages {most}"),), safe=False)
    yield Finding(
        stages.span,
        f"there are {count(stages.value, 'stage')}, but at most {most} {'is' if most == 1 else 'are'} ever in use",
        "more than the producer can ever fill",
        labels=tuple(labels),
        notes=tuple(notes),
        helps=(f"write `stages {most}`",) if fix else (),
        fix=fix,
    )
