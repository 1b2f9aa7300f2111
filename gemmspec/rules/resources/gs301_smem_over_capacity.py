"""GS301: the stages and store buffers need more shared memory than a CTA has."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix
from gemmspec.model.spec import Spec
from gemmspec.protocol.memory import most_stages, smem_bytes, smem_map
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count, kib


@spec_rule("GS301", "smem-over-capacity")
def smem_over_capacity(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    The shared memory of one CTA (barriers, all stages of A and B, the store buffers of D) fits what the target gives
    one CTA.

    ## Why it matters
    A kernel that asks for more does not launch. How many stages fit decides how much latency the pipeline hides, so the
    finding says how many do, and which buffer takes how much.

    ## Limits
    Counts the shared memory that the generated kernel allocates, alignment included; code that you add to the kernel by
    hand may need more.
    """
    need, have = smem_bytes(spec), spec.target.smem_bytes
    if need <= have:
        return
    stages, most = spec.stages, most_stages(spec)
    tiles = [r for r in smem_map(spec) if r.name in ("A", "B", "D", "R")]
    notes = [f"{r.name} takes {kib(r.size)}: {r.detail}" for r in tiles]
    notes.append(f"barriers and alignment take {kib(need - sum(r.size for r in tiles))}")
    message = (
        f"{count(stages.value, 'stage')} need{'s' if stages.value == 1 else ''} {kib(need)} of shared memory, "
        f"but a CTA of {spec.target.name} has {kib(have)}"
    )
    if most == 0:
        yield Finding(
            stages.span,
            message,
            "not even one stage fits",
            notes=tuple(notes),
            helps=("write a smaller `block`, or fewer store buffers (`chunk`, `buffers`)",),
        )
        return
    yield Finding(
        stages.span,
        message,
        f"the most that fits is {most}",
        notes=tuple(notes),
        helps=(f"write `stages {most}`",),
        fix=Fix(f"write `stages {most}`", (Edit(stages.span, f"stages {most}"),), safe=False),
    )
