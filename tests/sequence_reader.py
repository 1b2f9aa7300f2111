"""Reads a generated TIRx module, as Python text, down to the sequences of tests/sequences.

Knows TIRx's idiom and nothing of gemmspec: expressions are evaluated for one sample of indices, loops are named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

SAMPLE = {"k": 3, "c": 1, "cbx": 1, "bx": 1, "lane_id": 0}
TILES = SimpleNamespace(m_idx=1, n_idx=2)


@dataclass
class Ring:
    """A PipelineState."""

    depth: int
    first: int

    @property
    def stage(self) -> str | int:
        return "stage" if self.depth > 1 else 0

    @property
    def phase(self) -> str:
        return f"from {self.first}"


@dataclass
class Barrier:
    """A barrier object, or a view of it in another CTA."""

    name: str
    cta: str = ""

    def remote_view(self, rank: int) -> Barrier:
        return Barrier(self.name, f" of cta {rank}")


def sequence(module: str, sizes: dict[str, int]) -> list[str]:
    """Return the lines of a module's function for the sizes."""
    (function,) = [n for n in ast.parse(module).body if isinstance(n, ast.FunctionDef)]
    reader = _Reader({**SAMPLE, **sizes, "tiles": TILES})
    kernel = None
    for node in function.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple):
            reader.assign(node)
        elif isinstance(node, ast.FunctionDef):
            kernel = node
    assert kernel is not None
    reader.roles = iter(_role_names(module))
    return [line for node in kernel.body for line in reader.statement(node, "")]


def _role_names(module: str) -> list[str]:
    return [line.split("# Role ")[1].split(":")[0] for line in module.splitlines() if "# Role " in line]


class _Reader:
    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.roles: Iterator[str] = iter(())

    def assign(self, node: ast.Assign) -> Iterator[str]:
        """Take a name down; yield the line of a barrier's declaration."""
        value, (target,) = node.value, node.targets
        called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        if isinstance(target, ast.Tuple):
            self.names.update(zip((ast.unparse(t) for t in target.elts), self.value(value), strict=True))
            return []  # type: ignore[return-value]
        name = ast.unparse(target)
        match called:
            case "TMABar" | "TCGen05Bar" | "MBarrier":
                self.names[name] = Barrier(name)
                self.names[f"{name} slots"] = self.value(value.args[1])
            case "PipelineState":
                self.names[name] = Ring(self.value(value.args[0]), self.value(value.keywords[0].value))
            case "T.meta_var":
                self.names[name] = self.value(value.args[0])
            case "" | "dict":
                self.names[name] = self.value(value)
            case _ if called.endswith(".remote_view"):
                self.names[name] = self.value(value)
            case _:
                pass
        return []  # type: ignore[return-value]

    def value(self, node: ast.expr) -> Any:
        try:
            return eval(compile(ast.Expression(node), "<module>", "eval"), {"T": SimpleNamespace()}, dict(self.names))
        except (NameError, AttributeError, TypeError):
            return None

    def statement(self, node: ast.stmt, margin: str) -> Iterator[str]:
        inner = margin + "  "
        match node:
            case ast.Assign():
                self.assign(node)
            case ast.Expr(value=ast.Call()):
                yield from (margin + line for line in self.call(node.value))
            case ast.While():
                yield margin + "while tiles"
                yield from self.body(node.body, inner)
            case ast.For(target=ast.Name(id="k")):
                yield margin + "for k"
                yield from self.body(node.body, inner)
            case ast.For(target=ast.Name(id="c")):
                yield margin + f"for {self.value(node.iter.args[0])} chunks"
                yield from self.body(node.body, inner)
            case ast.For(target=ast.Name(id=index)):
                for i in range(self.value(node.iter.args[0])):
                    self.names[index] = i
                    yield from self.body(node.body, margin)
            case ast.If():
                yield from self.condition(node, margin)
            case _:
                pass

    def body(self, nodes: list[ast.stmt], margin: str) -> Iterator[str]:
        for node in nodes:
            yield from self.statement(node, margin)

    def condition(self, node: ast.If, margin: str) -> Iterator[str]:
        inner, test = margin + "  ", ast.unparse(node.test)
        if any(isinstance(n, ast.While) for n in ast.walk(node)) and "wg_id" in test:
            yield margin + f"role {next(self.roles)}"
            last = {"wg_id": 1 if "wg_id < " in test else 0, "warp_id": 1 if "warp_id < " in test else 0}
            self.names.update(last)
            yield from self.body(node.body, inner)
            yield from self.body(node.orelse, margin)
        elif test == "T.cuda.elect_sync()":
            yield margin + "elected"
            yield from self.body(node.body, inner)
        elif test == "(warp_id == 0) & (lane_id == 0)":
            yield margin + "one thread"
            yield from self.body(node.body, inner)
        elif test == "cbx == 0":
            yield margin + "if cta 0"
            yield from self.body(node.body, inner)
        else:
            assert test == "(wg_id == 0) & (warp_id == 0)", test
            yield from self.body(node.body, margin)

    def call(self, call: ast.Call) -> Iterator[str]:
        name = ast.unparse(call.func)
        options = {k.arg: k.value for k in call.keywords if k.arg}
        args = call.args
        owner = self.value(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if isinstance(owner, Barrier):
            yield from self.barrier(owner, name.rpartition(".")[2], args, options)
            return
        match name:
            case "Tx.copy_async" if "mbar" in options:
                _, rows, depth = self.box(args[1])
                mbar = options["mbar"]
                assert isinstance(mbar, ast.Call) and isinstance(mbar.func, ast.Attribute)
                barrier, slot = self.value(mbar.func.value), self.value(mbar.args[0])[0]
                tensor = ast.unparse(args[1]).partition("[")[0]
                yield f"load {tensor} rows {rows} depth {depth} -> {barrier.name}[{slot}]{barrier.cta}"
            case "Tx.copy_async":
                tensor, rows, columns = self.box(args[0])
                yield f"store {tensor} rows {rows} columns {columns}"
            case "Tx.wg.copy_async":
                yield f"read columns {self.columns(args[1])}"
            case "Tx.gemm_async":
                yield f"mma columns {self.columns(args[0])} adds {ast.unparse(options['accum'])}"
            case "Tx.cast":
                yield "cast"
            case "Tx.copy":
                yield "write buffer"
            case "T.cuda.cta_sync" | "T.cuda.cluster_sync":
                yield f"sync {name.removeprefix('T.cuda.').removesuffix('_sync')}"
            case "T.cuda.warpgroup_sync":
                yield f"sync warpgroup {self.value(args[0])}"
            case _ if name.startswith("T.ptx"):
                yield self.instruction(name, args)
            case _:
                assert name.startswith(("ring", "turn", "tiles", "pool", "T.device_entry")), name

    def barrier(self, barrier: Barrier, verb: str, args: list[ast.expr], options: dict[str, ast.expr]) -> Iterator[str]:
        if verb == "init":
            slots = self.names[f"{barrier.name} slots"]
            yield f"barrier {barrier.name} slots {slots} arrivals {self.value(args[0])}"
            return
        place = f"{barrier.name}[{self.value(args[0])}]{barrier.cta}"
        if verb == "wait":
            yield f"wait {place} {self.value(args[1])}"
        elif len(args) > 1:
            yield f"expect {place} {self.value(args[1])}"
        elif barrier.name in ("mma2tma", "mma2ld"):
            yield f"commit {place}" + (f" mask {self.value(options['cta_mask']):#b}" if "cta_mask" in options else "")
        else:
            yield f"arrive {place}"

    def instruction(self, name: str, args: list[ast.expr]) -> str:
        known = {
            "tcgen05.alloc": "alloc",
            "tcgen05.relinquish": "relinquish",
            "tcgen05.dealloc": "dealloc",
            "T.ptx.fence.mbarrier_init.release.cluster": "fence mbarrier init",
            "T.ptx.griddepcontrol.launch_dependents": "let the next kernel begin",
            "T.ptx.griddepcontrol.wait": "wait for the kernels before",
            "T.ptx.fence.proxy.async_.shared__cta": "proxy fence",
            "T.ptx.tcgen05.fence__before_thread_sync": "fence before",
            "T.ptx.tcgen05.fence__after_thread_sync": "fence after",
            "T.ptx.tcgen05.wait__ld.sync.aligned": "wait ld",
            "T.ptx.cp.async_.bulk.commit_group": "commit group",
            "T.ptx.cp.async_.bulk.wait_group.read": "wait group read",
        }
        word = next(word for start, word in known.items() if start in name)
        if word in ("alloc", "dealloc"):
            return f"{word} {self.names['TMEM_COLS']} columns"
        return f"{word} {self.value(args[0])}" if word == "wait group read" else word

    def box(self, node: ast.expr) -> tuple[str, int, int]:
        """Return a global tensor, and where a box of it begins."""
        assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        first, second = (self.start(s) for s in node.slice.elts)
        return ast.unparse(node.value), first, second

    def columns(self, node: ast.expr) -> str:
        assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        part = node.slice.elts[1]
        assert isinstance(part, ast.Slice) and part.upper is not None
        return f"{self.start(part)}..{self.value(part.upper) - 1}"

    def start(self, part: ast.expr) -> int:
        assert isinstance(part, ast.Slice)
        return 0 if part.lower is None else self.value(part.lower)
