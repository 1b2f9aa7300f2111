"""The oracle finds every known bug and no others; the engine and the oracle agree on generated protocols."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from oracle.explore import explore, random_walks
from oracle.fences import missing_fences
from strategies import protocol_of, protocols, spec_texts

from gemmspec.protocol import Protocol

sys.path.append(str(Path(__file__).parent.parent / "bench" / "mutations"))
from operators import mutants
from subjects import Subject, subjects

SUBJECTS = {s.name: s for s in subjects()}
V9 = SUBJECTS["v9"].small
TINY = (
    SUBJECTS["v7"]
    .full.replace("stages   2", "stages   1")
    .replace("block    128 x 128", "block    128 x 64")
    .replace("chunk 128", "chunk 64")
)
LIMIT = 4_000
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


def made(text: str) -> Protocol:
    protocol = protocol_of(text)
    assert protocol is not None
    return protocol


def mutant(name: str, text: str = V9) -> Protocol:
    return next(m for n, m in mutants(made(text)) if n == name)


def instead(old: str, new: str, text: str = V9) -> Protocol:
    assert old in text
    return made(text.replace(old, new))


def finds(protocol: Protocol, kinds: set[str]) -> bool:
    """Whether exploring finds one of these kinds, for one of some trip counts."""
    trips = ((1, 1), (1, 2), (2, 2), (5, 3))
    return any(explore(protocol, k, t, limit=LIMIT, until=kinds).kinds.keys() & kinds for k, t in trips)


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=lambda s: s.name)
def test_a_correct_spec_is_clean_in_every_interleaving(subject: Subject) -> None:
    protocol = made(subject.small)
    assert not missing_fences(protocol)
    for k, tiles in ((1, 0), (1, 1), (2 * protocol.spec.stages.value + 1, 2), (2, 5)):
        verdict = explore(protocol, k, tiles, limit=LIMIT)
        assert verdict.complete and not verdict.kinds, f"K {k}, {tiles} tiles\n{verdict.witness}"


@pytest.mark.parametrize("stages", (1, 2, 3, 4))
def test_v9_is_clean_whatever_the_number_of_stages(stages: int) -> None:
    verdict = explore(instead("stages   2", f"stages   {stages}"), stages + 1, 2, limit=LIMIT)
    assert verdict.complete and not verdict.kinds


def test_commits_need_no_order_between_ctas_within_one_pair() -> None:
    assert not explore(made(V9), 3, 2, in_order=False).kinds


def test_a_commit_to_another_pair_may_outlive_it_unless_commits_arrive_in_order() -> None:
    protocol = made(SUBJECTS["cluster of 4, multicast A"].small)
    assert not explore(protocol, 1, 1).kinds
    assert "exit" in explore(protocol, 1, 1, in_order=False).kinds


# What went wrong in the field (shared/field-bugs.md) and what it looks like: any of these kinds will do.
BUGS: dict[str, tuple[Callable[[], Protocol], set[str]]] = {
    "accumulator released by half the threads": (lambda: instead("arrivals 256", "arrivals 128"), {"race", "stale"}),
    "accumulator released by all but one thread": (lambda: instead("arrivals 256", "arrivals 255"), {"split"}),
    "accumulator waits for too many threads": (lambda: instead("arrivals 256", "arrivals 512"), {"deadlock"}),
    "32 arrivals where one thread arrives": (
        lambda: instead("via tma      arrivals 1 ", "via tma      arrivals 32"),
        {"deadlock"},
    ),
    "producer starts on phase 0": (
        lambda: instead("commit   arrivals 2    phase 1", "commit   arrivals 2    phase 0"),
        {"deadlock"},
    ),
    "consumer starts on phase 1": (
        lambda: instead("via tma      arrivals 1    phase 0", "via tma      arrivals 1    phase 1"),
        {"race", "stale"},
    ),
    "epilogue starts on phase 1": (
        lambda: instead("commit   arrivals 1    phase 0", "commit   arrivals 1    phase 1"),
        {"race", "stale"},
    ),
    "stage released by one of two consumers": (
        lambda: instead("commit   arrivals 2", "commit   arrivals 1"),
        {"race", "stale"},
    ),
    "expected bytes halved": (
        lambda: mutant("bytes Expect tma2mma at producer/0.0.4 /2"),
        {"race", "stale", "deadlock"},
    ),
    "expected bytes doubled": (lambda: mutant("bytes Expect tma2mma at producer/0.0.4 x2"), {"deadlock"}),
    "one operand's bytes forgotten": (
        lambda: mutant("bytes Expect tma2mma at producer/0.0.4 without A of consumer 0"),
        {"deadlock", "race"},
    ),
    "no expectation": (lambda: mutant("drop Expect tma2mma at producer/0.0.4"), {"deadlock"}),
    "no load of B": (lambda: mutant("drop Load B at producer/0.0.3"), {"deadlock"}),
    "stage never released": (lambda: mutant("drop Commit mma2tma at consumer/0.2.2"), {"deadlock"}),
    "accumulator never handed over": (lambda: mutant("drop Commit mma2ld at consumer/0.3"), {"deadlock"}),
    "accumulator never released": (lambda: mutant("drop Arrive ld2mma at writeback/0.4"), {"deadlock"}),
    "load without waiting for room": (
        lambda: mutant("drop Wait mma2tma at producer/0.0.0"),
        {"race", "stale", "over-arrival"},
    ),
    "MMA without waiting for the stage": (lambda: mutant("drop Wait tma2mma at consumer/0.2.0"), {"race", "stale"}),
    "MMA without waiting for the accumulator": (lambda: mutant("drop Wait ld2mma at consumer/0.0"), {"race", "stale"}),
    "epilogue without waiting": (lambda: mutant("drop Wait mma2ld at writeback/0.0"), {"race", "stale"}),
    "k loop of the consumer one short": (lambda: mutant("loop k -1 at consumer/0.2"), {"deadlock", "stale"}),
    "k loop of a fixed number": (lambda: mutant("loop k fixed 4 at consumer/0.2"), {"deadlock", "stale"}),
    "stage released to one CTA only": (
        lambda: instead("arrivals 2    phase 1  multicast 0b11", "arrivals 2    phase 1  multicast 0b1"),
        {"deadlock"},
    ),
    "accumulator handed to one CTA only": (
        lambda: instead("arrivals 1    phase 0  multicast 0b11", "arrivals 1    phase 0  multicast 0b1"),
        {"deadlock"},
    ),
    "accumulator released to the own CTA": (
        lambda: instead("arrivals 256  phase 1  at cta 0", "arrivals 256  phase 1  at own"),
        {"deadlock"},
    ),
    "loads signal the own CTA": (lambda: instead("phase 0  at cta 0", "phase 0  at own"), {"deadlock", "bytes"}),
    "both consumers on one accumulator": (
        lambda: mutant("retarget Mma at consumer/0.2.1 accumulator 0"),
        {"race", "stale"},
    ),
    "both epilogues read one accumulator": (
        lambda: mutant("retarget AccRead at writeback/0.2.0 accumulator 0"),
        {"race", "stale"},
    ),
    "accumulator released before it is read": (
        lambda: mutant("move Arrive ld2mma at writeback/0.4 first"),
        {"race", "stale"},
    ),
    "no wait::ld": (lambda: mutant("drop AccReadWait at writeback/0.2.1"), {"race"}),
    "store buffer reused with a store in flight": (lambda: mutant("drop StoreWait at writeback/0.2.7"), {"race"}),
    "one store too many in flight": (lambda: mutant("pending StoreWait at writeback/0.2.7 +1"), {"race"}),
    "stores never committed": (lambda: mutant("drop StoreCommit at writeback/0.2.6"), {"race"}),
    "CTA exits before its peer is done": (lambda: mutant("end sync cta"), {"exit"}),
    "barriers initialised for the own CTA only": (lambda: mutant("start sync cta"), {"uninitialised"}),
    "ring with fewer barriers than stages": (lambda: mutant("depth tma2mma -1"), {"bounds"}),
    "roles disagree on the depth of a ring": (lambda: mutant("depth of cursor 1 (stage) of consumer -1"), {"deadlock"}),
    "cursor not advanced": (lambda: mutant("loop k at consumer/0.2 forgets cursor 1"), {"deadlock", "stale", "lapped"}),
    "commit mask of the first pair in a cluster of 4": (
        lambda: instead(
            "barrier mma2tma [stages]  consumer  -> producer",
            "barrier mma2tma [stages]  consumer  -> producer multicast 0b11",
            SUBJECTS["cluster of 4, multicast A"].small.replace(" multicast A", ""),
        ),
        {"deadlock", "race", "over-arrival"},
    ),
    "Hopper: stage released while wgmma reads it": (
        lambda: mutant("pending Retire at consumer/0.0.2 +1", SUBJECTS["Hopper, release at once"].small),
        {"race"},
    ),
    "Hopper: registers stored before wgmma is done": (
        lambda: mutant("drop Retire at consumer/0.1", SUBJECTS["Hopper"].small),
        {"race"},
    ),
    "Hopper: exit with a store in flight": (
        lambda: mutant("drop StoreWait at consumer/1", SUBJECTS["Hopper"].small),
        {"exit"},
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_known_bug_is_found(bug: str) -> None:
    make, kinds = BUGS[bug]
    assert finds(make(), kinds)


def test_a_sync_of_the_cta_inside_a_role_hangs() -> None:
    program = (
        "program consumer {\n  for tile {\n    wait ld2mma[self]\n    for k {\n      wait tma2mma[stage]\n      mma\n"
    )
    program += "      commit mma2tma[stage]\n    }\n    sync cta\n    commit mma2ld[self]\n  }\n}\n"
    assert finds(made(V9 + program), {"deadlock"})


@pytest.mark.parametrize(
    "name",
    [
        "drop ProxyFence at writeback/0.2.3",
        "drop WarpgroupSync at writeback/0.2.4",
        "drop WarpgroupSync at writeback/0.2.8",
        "drop TcgenFence at consumer/0.1",
        "drop TcgenFence at writeback/0.1",
        "drop TcgenFence at writeback/0.3",
        "move ProxyFence at writeback/0.2.3 earlier",
        "move ProxyFence at writeback/0.2.3 later",
    ],
)
def test_a_missing_fence_is_found(name: str) -> None:
    assert missing_fences(mutant(name))


def test_unbalanced_arrivals_alone_are_no_error() -> None:
    idle = mutant("arrivals ld2mma x2")
    assert explore(idle, 1, 1).unbalanced and not explore(idle, 1, 1).bad


def test_a_witness_tells_the_way() -> None:
    witness = explore(mutant("drop Wait mma2tma at producer/0.0.0"), 3, 1, first=True).witness
    assert "load A[0]" in witness and "=> " in witness


def test_a_capped_search_says_so() -> None:
    assert not explore(made(V9), 3, 2, limit=50).complete


def test_random_walks_find_bugs_and_nothing_else() -> None:
    assert not random_walks(made(V9), 5, 3, n=10).kinds
    verdict = random_walks(mutant("drop Wait mma2tma at producer/0.0.0"), 5, 2, n=20)
    assert verdict.race and not verdict.complete


def test_reduction_loses_no_violation() -> None:
    """Every 7th mutant of a tiny pipeline, with and without partial-order reduction."""
    for name, broken in list(mutants(made(TINY)))[::7]:
        for k, tiles in ((1, 2), (2, 1)):
            reduced = explore(broken, k, tiles, limit=8000)
            full = explore(broken, k, tiles, limit=8000, reduced=False)
            if reduced.complete and full.complete:
                assert set(reduced.kinds) == set(full.kinds), f"{name}, K {k}, {tiles} tiles"


def test_reduction_loses_no_violation_in_a_cluster() -> None:
    protocol = made(TINY.replace("cluster  1 x 1", "cluster  1 x 2"))
    for name, broken in list(mutants(protocol))[::20]:
        reduced, full = (explore(broken, 1, 1, limit=8000, reduced=r) for r in (True, False))
        if reduced.complete and full.complete:
            assert set(reduced.kinds) == set(full.kinds), name


@settings(quick, max_examples=25)
@given(spec_texts(correct=True))
def test_generated_sound_specs_are_clean(text: str) -> None:
    protocol = made(text)
    for k, tiles in ((1, 1), (7, 2), (2, 5)):
        verdict = explore(protocol, k, tiles, first=True, limit=LIMIT)
        assert verdict.complete and not verdict.bad, f"{text}\nK {k}, {tiles} tiles: {verdict}\n{verdict.witness}"


judge = pytest.importorskip("gemmspec.proof.judge").judge


def trips(protocol: Protocol) -> tuple[tuple[int, int], ...]:
    """Past two wraps of the deepest ring."""
    depth = max([protocol.spec.stages.value, *(c.depth for p in protocol.programs for c in p.cursors)])
    return (1, 0), (1, 1), (1, 2), (2, 2), (depth + 1, 2), (2 * depth + 1, 3), (2, 2 * depth + 1)


def judged(protocol: Protocol) -> tuple[str, bool]:
    """What the oracle finds first, and whether it explored everything."""
    missing = missing_fences(protocol)
    if missing:
        return missing[0], True
    for k, tiles in trips(protocol):
        verdict = explore(protocol, k, tiles, first=True, limit=LIMIT)
        if verdict.bad:
            return f"K {k}, {tiles} tiles: {verdict}\n{verdict.witness}", True
        if not verdict.complete:
            return "", False
    return "", True


@quick
@given(spec_texts(correct=True))
def test_the_engine_raises_no_false_alarm(text: str) -> None:
    assert judge(made(text)).ok, text


@quick
@given(protocols())
def test_engine_and_oracle_agree(protocol: Protocol) -> None:
    wrong, complete = judged(protocol)
    verdict = judge(protocol)
    if wrong:
        assert not verdict.ok, wrong
    elif complete:
        assert verdict.ok, [str(f) for f in verdict.faults]
