"""Mutants of the study on numbers: none fails that the proof calls clean; what it rejects fails as it says."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from oracle.fences import missing_fences
from strategies import protocols

sys.path.append(str(Path(__file__).parent.parent / "bench" / "mutations"))
from operators import mutants
from schedules import RIGHT, Size, run, runs, shows, sizes_of
from subjects import Subject, protocol_of, protocol_or_none, subjects
from texts import text_mutants

from gemmspec.driver import check
from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict, judge
from gemmspec.proof.words import cycle
from gemmspec.protocol import Protocol
from gemmspec.report.spec import spec_text
from gemmspec.rules import CHECKS
from gemmspec.simulate import Fault as Shown
from gemmspec.source import SourceFile

SUBJECTS = {s.name: s for s in subjects()}

# ---- a sample of all mutants

OF_PROTOCOL, OF_TEXT = 8, 3


def sample(subject: Subject) -> list[tuple[str, Protocol]]:
    """Some mutants of a subject, the same in every run."""
    rng = random.Random(subject.name)
    protocol = protocol_of(subject.small)
    chosen = rng.sample(list(mutants(protocol)), OF_PROTOCOL)
    for name, text in rng.sample(list(text_mutants(spec_text(protocol))), OF_TEXT):
        mutant = protocol_or_none(text)
        if mutant is not None:
            chosen.append((name, mutant))
    return chosen


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=lambda s: s.name)
def test_simulation_finds_no_fault_in_what_the_proof_calls_clean(subject: Subject) -> None:
    rejected: list[str] = []
    hidden: list[str] = []
    for name, mutant in sample(subject):
        seen = {str(size): shows(run(mutant, size, seed)) for size, seed in runs(mutant, len(sizes_of(mutant)))}
        if judge(mutant).ok:
            assert set(seen.values()) == {RIGHT}, f"{name}: {seen}"
        else:
            rejected.append(name)
            hidden += [name] if set(seen.values()) == {RIGHT} else []
    # A fence that is missing never shows, and some races take more seeds.
    assert len(hidden) <= len(rejected) / 2, hidden


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(protocols(mutations=2))
def test_generated_protocols_that_the_proof_calls_clean_simulate_right(protocol: Protocol) -> None:
    if judge(protocol).ok:
        for size, seed in runs(protocol, len(sizes_of(protocol))):
            assert shows(run(protocol, size, seed)) == RIGHT, f"{size}, seed {seed}"


# ---- what lint predicts, and what happens


@dataclass(frozen=True)
class Broken:
    """A mutant, the codes that lint tells it by, and the kind of fault in simulation."""

    subject: str
    mutant: str
    codes: tuple[str, ...]
    shows: str


BROKEN = (
    Broken("v9", "flip phase Wait mma2tma at producer/0.0.0", ("GS110",), "hang"),
    Broken("v7", "drop Arrive ld2mma at writeback/0.2.3", ("GS117",), "hang"),
    Broken("v8", "bytes Expect tma2mma at producer/0.0.3 x2", ("GS110",), "hang"),
    Broken("two accumulators", "arrivals mma2tma x2", ("GS110",), "hang"),
    Broken("early release, commits in the last k", "loop k -1 at consumer/0.2", ("GS123",), "hang"),
    Broken("v9", "arrivals ld2mma /2", ("GS112",), "hazard"),
    Broken("v8", "move Arrive ld2mma at writeback/0.4 first", ("GS202",), "hazard"),
    Broken("cluster of 4, multicast A", "drop Wait tma2mma at consumer/0.2.0", ("GS125",), "hazard"),
    Broken("three stages", "drop Wait mma2tma at producer/0.0.0", ("GS125",), "hazard"),
    Broken("one role a warp, two producers", "retarget Wait a_full at consumer/0.2.0 to b_full", ("GS125",), "hazard"),
    Broken("store ring of 2 buffers, 3 stages", "pending StoreWait at writeback/0.2.2 +1", ("GS205",), "hazard"),
    Broken("v9", "drop ProxyFence at writeback/0.2.3", ("GS208",), "hazard"),
    Broken("Hopper, release at once", "pending Retire at consumer/0.0.2 +1", ("GS201", "GS202"), "hazard"),
    Broken("v9", "start sync cta", ("GS209",), "uninitialised"),
    Broken("v9", "end sync none", ("GS204",), "exited"),
)


def codes(protocol: Protocol, verdict: Verdict) -> tuple[str, ...]:
    found = ((rule.code, (*rule.on_protocol(protocol), *rule.on_verdict(verdict))) for rule in CHECKS)
    return tuple(sorted(code for code, findings in found if findings))


def predicted_hang(fault: Fault) -> set[tuple[object, ...]]:
    """Who waits where for which phase of which barrier, and what that phase lacks, by the proof."""
    return {
        (b.at.role, b.at.instance, b.at.cta, b.at.tile, b.at.k, b.barrier, b.slot, b.completed, b.pending, b.bytes)
        for b in fault.cycle
    }


def simulated_hang(fault: Shown) -> set[tuple[object, ...]]:
    """The same, where the simulation stands."""
    return {
        (p.role, p.instance, p.cta, p.tile, p.k or 0, w.barrier, w.slot, w.phase, w.arrivals, w.bytes)
        for w in fault.waits
        for p in (w.place,)
    }


def is_predicted(fault: Fault, shown: Shown) -> bool:
    """Whether a fault in simulation has the roles and the place of one that the proof tells."""
    name = fault.place.split("[")[0]
    if name == "acc":
        name = "accumulator"
    roles = {fault.at.role, fault.other.role if fault.other else fault.at.role}
    there = {p.role for p in (shown.place, shown.other) if p is not None}
    return name in shown.message and there <= roles


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: f"{b.subject}: {b.mutant}")
def test_what_lint_rejects_fails_as_predicted(broken: Broken) -> None:
    protocol = dict(mutants(protocol_of(SUBJECTS[broken.subject].small)))[broken.mutant]
    verdict = judge(protocol)
    assert codes(protocol, verdict) == broken.codes
    told = [*verdict.faults, *(blame.fault for blame in verdict.blames)]
    if broken.shows == "hang":
        (fault,) = told
        assert fault.kind is Kind.DEADLOCK and fault.cycle
        for seed in range(3):
            outcome = run(protocol, Size(fault.k_tiles[0], 5, 1), seed)
            assert simulated_hang(outcome.faults[-1]) == predicted_hang(fault)
            assert set(outcome.faults[-1].cycle) == {b.at.role for b in cycle(fault)}
            assert outcome.wrong
        return
    for size, seed in runs(protocol, 40):
        outcome = run(protocol, size, seed)
        found = [f for f in outcome.faults if f.kind == broken.shows]
        if any(is_predicted(fault, shown) for fault in told for shown in found):
            assert outcome.wrong
            return
    pytest.fail("no schedule shows it")


def test_a_hang_names_the_cta_that_starves() -> None:
    """CTA 0's copy of the barrier is signalled: its producer runs ahead, and waits for CTA 1's all the same."""
    text = (Path(__file__).parent.parent / "specs" / "v9.gemmspec").read_text(encoding="utf-8")
    broken = re.sub(r"(barrier mma2tma .*multicast) 0b11", r"\1 0b01", text)
    (found,) = check(SourceFile("v9", broken)).report.errors
    assert (found.code, found.label) == ("GS114", "0b01 is not 0b11")
    assert found.notes[-1] == "the kernel hangs: `producer` of CTA 1 waits for `mma2tma[0]`"


@pytest.mark.parametrize(
    ("subject", "mutant"),
    [
        ("cluster of 4, multicast A", "retarget Load A at producer/0.0.1 writes pair"),
        ("v7", "condition Mma at consumer/0.2.1 if k == first"),
    ],
)
def test_wrong_data_in_perfect_order_gives_wrong_numbers(subject: str, mutant: str) -> None:
    protocol = dict(mutants(protocol_of(SUBJECTS[subject].small)))[mutant]
    assert codes(protocol, judge(protocol)) == ("GS207",)
    assert "wrong numbers" in {shows(run(protocol, size, 0)) for size in sizes_of(protocol)}


def test_a_wait_that_a_fresh_barrier_lets_pass_needs_no_fence() -> None:
    protocol = dict(mutants(protocol_of(SUBJECTS["v7"].small)))["condition TcgenFence at consumer/0.1 if tile != first"]
    assert judge(protocol).ok and not missing_fences(protocol)
    assert {shows(run(protocol, size, 0)) for size in sizes_of(protocol)} == {RIGHT}
