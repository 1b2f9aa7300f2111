"""Hypothesis strategies: small specs as text, and Protocols of them with or without a bug put in."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import assume
from hypothesis import strategies as st

from gemmspec.model import resolve
from gemmspec.protocol import Protocol, derive
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import parse

sys.path.append(str(Path(__file__).parent.parent / "bench" / "mutations"))
from operators import OPERATORS

CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1))
PRODUCER = """\
program producer {
  for tile {
    for k {
      wait empty
      load full
      expect full
    }
  }
}
"""
CONSUMER = """\
program consumer {
  for tile {
    wait room
    for k {
      wait full
      mma
      commit empty
    }
    commit sum
  }
}
"""
WRITEBACK = """\
program writeback {
  for tile {
    wait sum
    for chunk {
      read
      if chunk == last {
        arrive room
      }
      store
    }
  }
}
"""
MATH = """\
program consumer {
  for tile {
    for k {
      wait full
      mma
      retire 0
      arrive empty
    }
    for chunk {
      store
    }
  }
}
"""


def protocol_of(text: str) -> Protocol | None:
    """Return the Protocol of a text; None where names or values are wrong."""
    source = SourceFile("generated", text)
    tree, errors = parse(source)
    spec, found = resolve(tree, source)
    return None if spec is None or errors or found else derive(spec)


@st.composite
def spec_texts(draw: st.DrawFn, correct: bool = False) -> str:
    """Small specs: mostly sound, some with wrong values or an edited program (none if `correct`)."""
    hopper = draw(st.booleans())
    m, n = draw(st.sampled_from(CLUSTERS))
    stages, consumers = draw(st.integers(2 if hopper else 1, 3)), draw(st.integers(1, 2))
    accumulators = 1 if hopper else draw(st.integers(1, 2))
    paired = not hopper and m % 2 == 0
    columns = 64 * (2 if paired else 1)
    chunk = draw(st.sampled_from((columns, columns // 2)))
    shared = [w for w, on in (("A", n > 1), ("B", m > 1 and not paired)) if on and draw(st.booleans())]
    buffers = f" buffers {draw(st.integers(1, 2))}"
    release = "" if hopper else draw(st.sampled_from(("", " release after read", " release after store")))

    def wrong(*values: str) -> str:
        """A property, seldom, with one of some values."""
        return f" {draw(st.sampled_from(values))}" if not correct and draw(st.integers(0, 11)) == 0 else ""

    def barrier(name: str, slots: str, source: str, waiter: str) -> str:
        arrivals = wrong(*(f"arrivals {i}" for i in (1, 2, 3, 4, 127, 128, 256, 512)))
        where = wrong("at own", "at leader", "at cta 0", "multicast pair", "multicast cluster", "multicast 0b1")
        return f"barrier {name} [{slots}] {source} -> {waiter}{arrivals}{wrong('phase 0', 'phase 1')}{where}\n"

    ring = wrong("[2]", "[1]", "[4]").strip(" []") or "stages"
    text = (
        f"kernel generated\ntarget {'sm_90a' if hopper else 'sm_100a'}\n"
        "gemm D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32\nsizes M = 4096, N = 4096, K = 4096\n"
        f"cluster {m} x {n}\nblock {64 if hopper else 128} x 64 x 64\nstages {stages}\naccumulators {accumulators}\n"
    )
    multicast = f" multicast {', '.join(shared)}" if shared else ""
    if hopper:
        text += f"role producer = tma on warpgroup 0 warp 0{multicast}\n"
        text += f"role consumer = mma, epilogue on warpgroups 1..{consumers} chunk {chunk}{buffers}\n"
    else:
        text += f"role producer = tma on warpgroup {consumers} warp 3{multicast}\n"
        text += f"role consumer = mma on warpgroup {consumers} warps 0..{consumers - 1}\n"
        text += f"role writeback = epilogue on warpgroups 0..{consumers - 1} chunk {chunk}{buffers}{release}\n"
    text += barrier("full", ring, "producer", "consumer") + barrier("empty", "stages", "consumer", "producer")
    if not hopper:
        slots = "consumer" + (" x accumulators" if accumulators > 1 else "")
        text += barrier("sum", slots, "consumer", "writeback") + barrier("room", slots, "writeback", "consumer")
    programs = (PRODUCER, MATH) if hopper else (PRODUCER, CONSUMER, WRITEBACK)
    for program in programs:
        if draw(st.integers(0, 2)) == 0:
            text += program if correct else draw(edited(program))
    return text


@st.composite
def edited(draw: st.DrawFn, program: str) -> str:
    """A program, often with a statement dropped, doubled, or moved."""
    lines = program.splitlines()
    simple = [i for i, line in enumerate(lines) if not line.strip().endswith(("{", "}"))]
    i = draw(st.sampled_from(simple))
    match draw(st.sampled_from(("as it is", "drop", "double", "move", "loop"))):
        case "drop":
            del lines[i]
        case "double":
            lines.insert(i, lines[i])
        case "move":
            line = lines.pop(i)
            lines.insert(draw(st.integers(2, len(lines) - 2)), line)
        case "loop":
            bound = draw(st.sampled_from(("for k - 1 {", "for k + 1 {", "for 3 {")))
            lines = [line.replace("for k {", bound) for line in lines]
        case _:
            pass
    return "\n".join(lines) + "\n"


@st.composite
def protocols(draw: st.DrawFn, mutations: int = 1) -> Protocol:
    """Protocols of generated specs, with up to `mutations` mutations of the study."""
    protocol = protocol_of(draw(spec_texts()))
    assume(protocol is not None)
    assert protocol is not None
    for _ in range(draw(st.integers(0, mutations))):
        operator = draw(st.sampled_from(OPERATORS))
        found = [mutant for name, mutant in operator(protocol) if "outside the cluster" not in name]
        if found:
            protocol = draw(st.sampled_from(found))
    return protocol
