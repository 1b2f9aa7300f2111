"""Expressions as text: sums and products without their idle terms, and names that Python and the module leave free."""

from __future__ import annotations

import builtins
import keyword
import re

# What the generated module itself names, apart from the spec's words.
_MODULE = """
T Tx tvm S TCol TLane TileLayout tid_in_wg SwizzleMode MBarrier PipelineState TCGen05Bar TMABar
ClusterPersistentScheduler2D RowByRow smem_desc_add_16B_offset
CTAS CLUSTER CLUSTER_M CLUSTER_N SPLIT SPLIT_K CTA_GROUP CONSUMERS STAGES ACCS BLK_M BLK_N BLK_K ACC_N
CHUNK_N CHUNKS BUFS TILE_M TILE_N M_TILES N_TILES K_TILES STAGE_BYTES A_PART B_PART ATOM_K ATOM_N TMEM_COLS
WGMMA MMA_M ACC_REGS PART_REGS A_STAGE B_STAGE A_ATOM B_ATOM A_HALF
tma load row_per_thread fragment kernel a b d bx cbx cta_m cta_n cta_k wg_id warp_id lane_id pool tmem tmem_addr tiles
ring acc buf turn acc_reg d_reg a_desc b_desc part_reg peer here part tid k c h i j kk p q
m_st n_st k_st h_st c_st a_st b_st d_st acc_st a_part b_part atom_st col_st a_kk a_step b_step peers
"""
_TAKEN = frozenset(_MODULE.split())
BOUNDED_WAITS = frozenset(("WAITS", "wait", "past"))
"""What it names beside, where waits are bounded."""


class Names:
    """Gives each word of the spec a Python name of its own."""

    def __init__(self, more: frozenset[str] = frozenset()) -> None:
        self._taken: set[str] = set(_TAKEN | more)

    def take(self, word: str) -> str:
        """Return the word, with underscores behind it until it is free."""
        while self._is_taken(word) or keyword.iskeyword(word) or hasattr(builtins, word):
            word += "_"
        self._taken.add(word)
        return word

    def _is_taken(self, word: str) -> bool:
        # The module numbers its own names where it needs several: ring, ring2.
        stem = word.rstrip("0123456789")
        return word in self._taken or (len(stem) > 1 and stem in _TAKEN)


def total(*terms: str) -> str:
    """Return the sum of terms; `0` where there is none."""
    return " + ".join(re.sub(r"^\((\w+ - \d+)\)$", r"\1", t) for t in terms if t != "0") or "0"


def product(*factors: str) -> str:
    """Return the product of factors; `1` where there is none."""
    if "0" in factors:
        return "0"
    kept = [f for f in factors if f != "1"]
    if len(kept) == 1:
        return kept[0]
    return " * ".join(f if all(map(is_name, f.split(" * "))) else atom(f) for f in kept) or "1"


def atom(text: str) -> str:
    """Return an expression that any operator may stand beside."""
    return text if is_name(text) or (text.startswith("(") and _closes_last(text)) else f"({text})"


def bare(text: str) -> str:
    """Return an expression that stands alone, without the parentheses around all of it."""
    return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def both(*conditions: str | None) -> str:
    """Return the conjunction of conditions, those that are None left out; empty where none is left."""
    kept = [c for c in conditions if c]
    return kept[0] if len(kept) == 1 else " & ".join(c if _is_conjunction(c) else f"({c})" for c in kept)


def span(start: str, length: str) -> str:
    """Return the slice of `length` elements from `start`."""
    if start == "0":
        return f": {length}" if " " in length else f":{length}"
    return f"{start} : {total(start, length)}"


def is_name(text: str) -> bool:
    """Say whether an expression is one name or number."""
    return text.replace("_", "").replace(".", "").isalnum()


def _is_conjunction(text: str) -> bool:
    """Say whether a condition is a conjunction already, of terms in parentheses."""
    terms: list[str] = [""]
    for piece in text.split(" & "):
        terms[-1] += piece
        if terms[-1].count("(") == terms[-1].count(")"):
            terms.append("")
        else:
            terms[-1] += " & "
    return all(t.startswith("(") and _closes_last(t) for t in terms[:-1])


def _closes_last(text: str) -> bool:
    """Say whether the first parenthesis closes with the last character."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(text) - 1
    return False
