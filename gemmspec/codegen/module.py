"""Protocol -> the text of a TIRx module. Generates text only: TVM is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmspec.codegen.kernel import DTYPES, Constant, Kernel
from gemmspec.codegen.ranks import PLACES, RANK
from gemmspec.codegen.roles import RoleText
from gemmspec.codegen.tiles import scheduler_class, start_tiles
from gemmspec.codegen.words import both, product
from gemmspec.codegen.writer import WIDTH, Block, Call, uses
from gemmspec.model.spec import WARPGROUP_THREADS, Role
from gemmspec.protocol.memory import TILE_ALIGNMENT, swizzle_of
from gemmspec.protocol.program import Protocol
from gemmspec.waits import Waits

_FIRST_WARP = "(wg_id == 0) & (warp_id == 0)"


@dataclass(frozen=True, slots=True)
class TirxModule:
    """A Python module in TIRx: its function `name` takes the sizes that are known and returns the PrimFunc.

    `axes`: what it calls M, N and K; `sizes`: those of them that the function takes, in order; `tensors`: what it
    calls A, B and D, in the order of the kernel's parameters.
    """

    name: str
    axes: tuple[str, str, str]
    sizes: tuple[str, ...]
    tensors: tuple[str, str, str]
    source: str


def lower(protocol: Protocol, waits: Waits | None = None) -> TirxModule:
    """Return the TIRx module of a Protocol. `waits`: bound its waits so, for a debug build."""
    kernel = Kernel(protocol, waits)
    body = _body(kernel)
    sizes = tuple(s for s in (kernel.m, kernel.n, kernel.k) if s not in kernel.dynamic)
    function = Block(Call(f"def {kernel.name}", sizes, ":") if sizes else Call(f"def {kernel.name}():", ()))
    text = "\n".join(body.lines(1))
    constants = tuple(_used(kernel.constants, text))
    for constant in constants:
        line = f"{', '.join(constant.names)} = {constant.value}"
        beside = f"{line}  # {constant.comment}"
        if constant.comment and len(beside) + 4 > WIDTH:
            function.line(f"# {constant.comment[0].upper()}{constant.comment[1:]}.")
        function.line(beside if constant.comment and len(beside) + 4 <= WIDTH else line)
    function.line("")
    _tables(kernel, text, function)
    function.items.append(body)
    function.line("")
    function.line("return kernel")
    code = "\n".join(function.lines())
    header = "\n".join(
        (*_docstring(kernel), "", *_imports(code), *_bounded_wait(kernel), *scheduler_class(kernel), "", "")
    )
    axes, tensors = (kernel.m, kernel.n, kernel.k), (kernel.a, kernel.b, kernel.d)
    return TirxModule(kernel.name, axes, sizes, tensors, f"{header}\n{code}\n")


def _docstring(kernel: Kernel) -> Iterator[str]:
    spec, t = kernel.spec, kernel.tiling
    gemm = spec.gemm
    product_ = (
        f"{kernel.d}[{kernel.m}, {kernel.n}] {gemm.d.value.value} = {kernel.a}[{kernel.m}, {kernel.k}] "
        f"{gemm.a.value.value} @ {kernel.b}[{kernel.n}, {kernel.k}]^T {gemm.b.value.value}"
    )
    yield f'"""{kernel.name}: {product_}, accumulated in f32, for {spec.target.name}.'
    yield ""
    who = "A CTA" if spec.cluster.size == 1 else "A pair of CTAs" if spec.paired and spec.cluster.size == 2 else (
        f"A cluster of {spec.cluster.m} x {spec.cluster.n} CTAs" if t.split == 1 else
        f"A cluster of {spec.cluster.m} x {spec.cluster.n} x {t.split} CTAs"
    )  # fmt: skip
    yield f"{who} computes {t.tile_m} x {t.tile_n} of {kernel.d} at a time. Made by gemmspec; stands alone."
    if kernel.waits is not None:
        yield f"A debug build: each wait gives up after {kernel.waits.seconds:g} s, and writes down where it stood."
    yield '"""'


def _bounded_wait(kernel: Kernel) -> Iterator[str]:
    """Yield the device function of bounded waits, and what calls it."""
    if kernel.waits is None:
        return
    yield ""
    yield f'WAITS = r"""{kernel.waits.source.rstrip()}'
    yield '"""'
    yield ""
    yield ""
    block = Block(Call("def wait", ("barrier", "slot", "parity", "past", "row", "site", "tile", "k", "named"), ":"))
    block.line('"""Return `past` + 1 once the phase is complete; -1 where the wait, or another one, gave up."""')
    block.call(
        "return T.cuda.func_call",
        '"gemmspec_wait"',
        "barrier.ptr_to([slot])",
        *("parity", "past", "row", "site", "slot", "tile", "k", "named"),
        "source_code=WAITS",
        'return_type="int32"',
    )
    yield from block.lines()


def _imports(code: str) -> Iterator[str]:
    pipeline = [n for n in ("MBarrier", "PipelineState", "TCGen05Bar", "TMABar") if uses(code, n)]
    layout = [n for n in ("S", "TCol", "TileLayout", "TLane", "tid_in_wg") if uses(code, n)]
    cuda = "tvm.backend.cuda"
    if pipeline:
        yield f"from {cuda}.lang.pipeline import {', '.join(pipeline)}"
    yield f"from {cuda}.lang.tile_scheduler import ClusterPersistentScheduler2D"
    if uses(code, "smem_desc_add_16B_offset"):
        yield f"from {cuda}.tile_primitive.common import smem_desc_add_16B_offset"
    if uses(code, "SwizzleMode"):
        yield f"from {cuda}.tile_primitive.tma_utils import SwizzleMode"
    yield "from tvm.script import tirx as T"
    yield "from tvm.script.tirx import tile as Tx"
    if layout:
        yield f"from tvm.tirx.layout import {', '.join(layout)}"


def _used(constants: tuple[Constant, ...], text: str) -> Iterator[Constant]:
    """Yield the constants that the text, or a later constant, uses."""
    kept: list[Constant] = []
    for constant in reversed(constants):
        if any(uses(text, name) for name in constant.names):
            kept.append(constant)
            text += f"\n{constant.value}"
    yield from reversed(kept)


def _tables(kernel: Kernel, text: str, function: Block) -> None:
    """Write the options and layouts that the kernel names."""
    # The first warp asks for the tensor maps ahead of all else: the first load then need not wait for its own.
    function.line(f'tma = {{"dispatch": "{kernel.dispatch}", "prefetch_tensormap": True}}')
    if uses(text, "load"):
        group = ', "cta_group": CTA_GROUP' if kernel.spec.paired else ""
        function.line(f'load = {{**tma{group}, "tensormap_l2_promotion": "L2::128B"}}')
    if uses(text, "row_per_thread"):
        function.line("row_per_thread = TileLayout(S[(128, CHUNK_N) : (1 @ tid_in_wg, 1)])")
    if uses(text, "fragment"):
        function.line("# Rows and columns of a thread's registers, as wgmma leaves them.")
        function.line("fragment = TileLayout(")
        function.line("    S[")
        function.line("        (4, 2, 8, CHUNK_N // 8, 4, 2) : (")
        function.line("            32 @ tid_in_wg,")
        for part in ("2", "4 @ tid_in_wg", "4", "1 @ tid_in_wg", "1"):
            function.line(f"            {part},")
        function.line("        )")
        function.line("    ]")
        function.line(")")
    function.line("")


def _body(kernel: Kernel) -> Block:
    """Return the decorated PrimFunc."""
    roles = [RoleText(kernel, p) for p in kernel.protocol.programs]
    warpgroups = max(role.role.placement.warpgroups[1] for role in roles) + 1
    registers = any(role.role.registers is not None for role in roles)
    placed = _by_warpgroup(kernel, roles, warpgroups) if registers else _by_role(roles, warpgroups)
    later = Block()
    _memory(kernel, later)
    _initialise(kernel, later)
    for view, expression in kernel.views.items():
        later.line(f"{view} = {expression}")
    if later.items[-1] != "":
        later.line("")
    _schedule(kernel, later)
    later.items.extend(placed.items)
    _finish(kernel, later)
    outer = Block()
    outer.line("@T.prim_func")
    body = outer.call_block(_signature(kernel))
    _sizes(kernel, body)
    body.line("T.device_entry()")
    if registers:
        body.line('T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})')
    _ids(kernel, warpgroups, "\n".join(later.lines()), body)
    body.items.extend(later.items)
    return outer


def _by_role(roles: list[RoleText], warpgroups: int) -> Block:
    """Return the roles one beside the other."""
    block = Block()
    for number, role in enumerate(roles):
        block.line("")
        block.line(_title(role.role))
        place = both(*role.warpgroups(warpgroups), *role.warps())
        role.write(block.block(f"{'elif' if number else 'if'} {place or 'T.bool(True)'}"))
    return block


def _by_warpgroup(kernel: Kernel, roles: list[RoleText], warpgroups: int) -> Block:
    """Return the roles within their warpgroups, which ask for registers first.

    The assembler has to see which count holds where, so nothing may stand between the request and the role.
    """
    together: dict[tuple[int, int], list[RoleText]] = {}
    for role in roles:
        together.setdefault(role.role.placement.warpgroups, []).append(role)
    block = Block()
    for number, group in enumerate(together.values()):
        block.line("")
        alone = len(group) == 1
        if alone:
            block.line(_title(group[0].role))
        place = both(*group[0].warpgroups(warpgroups))
        inner = block.block(f"{'elif' if number else 'if'} {place or 'T.bool(True)'}")
        asked = next((r.role.registers.value for r in group if r.role.registers is not None), None)
        if asked is not None:
            inner.first.append(_request(kernel, asked, warpgroups))
        for place_in, role in enumerate(group):
            if not alone:
                inner.line("")
                inner.line(_title(role.role))
            warps = both(*role.warps())
            role.write(inner.block(f"{'elif' if place_in else 'if'} {warps}") if warps else inner)
    return block


def _request(kernel: Kernel, registers: int, warpgroups: int) -> str:
    """Return the request for so many registers a thread."""
    share = kernel.spec.target.launch_registers(warpgroups * WARPGROUP_THREADS)
    return f"T.ptx.setmaxnreg.{'inc' if registers > share else 'dec'}.sync.aligned.u32({registers})"


def _title(role: Role) -> str:
    return f"# Role {role.name}: {_where(role)}."


def _signature(kernel: Kernel) -> Call:
    gemm = kernel.spec.gemm
    if kernel.dynamic:
        return Call("def kernel", ("a: T.handle", "b: T.handle", "d: T.handle"), ":")
    tensors = (
        (kernel.a, kernel.m, kernel.k, gemm.a.value),
        (kernel.b, kernel.n, kernel.k, gemm.b.value),
        (kernel.d, kernel.m, kernel.n, gemm.d.value),
    )
    return Call("def kernel", tuple(f'{n}: T.Buffer(({r}, {c}), "{DTYPES[t]}")' for n, r, c, t in tensors), ":")


def _sizes(kernel: Kernel, body: Block) -> None:
    """Bind what is known at run time only."""
    if not kernel.dynamic:
        return
    gemm = kernel.spec.gemm
    for size in kernel.dynamic:
        body.line(f"{size} = T.int32()")
    for handle, name, rows, columns, dtype in (
        ("a", kernel.a, kernel.m, kernel.k, gemm.a.value),
        ("b", kernel.b, kernel.n, kernel.k, gemm.b.value),
        ("d", kernel.d, kernel.m, kernel.n, gemm.d.value),
    ):
        body.line(f'{name} = T.match_buffer({handle}, ({rows}, {columns}), "{DTYPES[dtype]}")')
    for name, size, tile in (
        ("M_TILES", kernel.m, kernel.tile_m),
        ("N_TILES", kernel.n, kernel.tile_n),
        ("K_TILES", kernel.k, kernel.tile_k),
    ):
        if size in kernel.dynamic:
            body.line(f"{name} = T.meta_var(T.truncdiv({size} + {tile} - 1, {tile}))")


def _ids(kernel: Kernel, warpgroups: int, text: str, body: Block) -> None:
    size = kernel.spec.cluster.size
    body.line("bx = T.cta_id([CTAS])")
    ids = (
        (RANK, "T.cta_id_in_cluster([CLUSTER])" if size > 1 else ""),
        ("wg_id", f"T.warpgroup_id([{warpgroups}])"),
        ("warp_id", "T.warp_id_in_wg([4])"),
        ("lane_id", "T.lane_id([32])"),
    )
    for name, value in ids:
        if value and (uses(text, name) or name in (RANK, "wg_id")):
            body.line(f"{name} = {value}")
        if name == RANK:
            for place in PLACES:
                if uses(text, place):
                    body.line(f"{place} = T.meta_var({kernel.ranks.place(place)})")


def _memory(kernel: Kernel, body: Block) -> None:
    """Lay out shared memory, in the order of the Protocol's map."""
    spec, t = kernel.spec, kernel.tiling
    body.line("")
    body.line("# Shared memory.")
    body.line("pool = T.SMEMPool()")
    if spec.target.has_tmem:
        body.line('tmem_addr = pool.alloc((1,), "uint32")')
    for plan in kernel.protocol.barriers:
        body.line(f"{kernel.barriers[plan.name]} = {kernel.barrier_class(plan)}(pool, {kernel.slots(plan)})")
    stages = kernel.count(t.stages, "STAGES")
    consumers = kernel.consumers
    a_rows = (product(consumers, "BLK_M"),) if kernel.merged else (consumers, "BLK_M")
    d = (str(t.writers) if t.writers != t.consumers else consumers, kernel.count(t.buffers, "BUFS"))
    for name, dims, dtype, columns in (
        (kernel.a_smem, (stages, *a_rows, "BLK_K"), spec.gemm.a.value, t.block_k),
        (kernel.b_smem, (stages, "BLK_N", "BLK_K"), spec.gemm.b.value, t.block_k),
        (kernel.d_smem, (*d, "BLK_M", "CHUNK_N"), spec.gemm.d.value, t.chunk),
    ):
        kept = [dim for dim in dims if dim != "1"]
        swizzle = swizzle_of(columns * dtype.bytes)
        # TIRx takes the widest swizzle where it is told none.
        narrow = [f"swizzle_mode=SwizzleMode.SWIZZLE_{swizzle}B_ATOM"] if swizzle < 128 else []
        form, options = ("alloc_tcgen05_mma_AB", narrow) if swizzle else ("alloc", [f"align={TILE_ALIGNMENT}"])
        body.call(f"{name} = pool.{form}", f"({', '.join(kept)})", f'"{DTYPES[dtype]}"', *options)
    if t.split > 1:
        parts = [dim for dim in (consumers, kernel.count(t.split - 1, "SPLIT - 1")) if dim != "1"]
        shape = ", ".join((*parts, f"{product(str(kernel.halves), 'PART_REGS')} // 4", "128", "4"))
        body.call(f"{kernel.parts} = pool.alloc", f"({shape})", '"float32"', f"align={TILE_ALIGNMENT}")
    body.line("pool.commit()")


def _initialise(kernel: Kernel, body: Block) -> None:
    """Initialise barriers and tensor memory, and make them known to all who use them."""
    spec, cluster = kernel.spec, kernel.protocol.start_sync == "cluster"
    tmem = spec.target.has_tmem
    what = "Barriers and tensor memory" if tmem else "Barriers"
    whole = "cluster" if cluster else "CTA"
    body.line("")
    body.line(f"# {what}, made known to the whole {whole} before anyone uses them.")
    for plan in kernel.protocol.barriers:
        body.line(f"{kernel.barriers[plan.name]}.init({kernel.arrivals(plan)})")
    if tmem:
        alloc = body.block(f"if {_FIRST_WARP}")
        group = f"cta_group::{spec.pair}.sync.aligned"
        alloc.call(
            f'T.ptx["tcgen05.alloc.{group}.shared::cta.b32"]', "T.address_of(tmem_addr[0])", "T.uint32(TMEM_COLS)"
        )
        alloc.line(f'T.ptx["tcgen05.relinquish_alloc_permit.{group}"]()')
    body.line("T.ptx.fence.mbarrier_init.release.cluster()")
    sync = "T.cuda.cluster_sync()" if cluster else "T.cuda.cta_sync()"
    if not tmem:
        body.line(sync)
        body.line("")
        return
    body.line("T.ptx.tcgen05.fence__before_thread_sync()")
    body.line(sync)
    body.line("T.ptx.tcgen05.fence__after_thread_sync()")
    body.line("")
    body.line("# All columns are this CTA's, so the allocation starts at column 0.")
    layout = "layout=TileLayout(S[(128, TMEM_COLS) : (1 @ TLane, 1 @ TCol)])"
    body.call("tmem = T.decl_buffer", "(128, TMEM_COLS)", '"float32"', 'scope="tmem"', "allocated_addr=0", layout)


def _schedule(kernel: Kernel, body: Block) -> None:
    start_tiles(kernel, body)
    body.line("")
    body.line("# Let the next kernel set itself up, and wait for those before: from here on, global memory is touched.")
    body.line("T.ptx.griddepcontrol.launch_dependents()")
    body.line("T.ptx.griddepcontrol.wait()")


def _finish(kernel: Kernel, body: Block) -> None:
    """Wait for the peers, and free tensor memory, by one warp."""
    match kernel.protocol.end_sync:
        case "cluster":
            body.line("")
            body.line("# No CTA leaves while its peers may still reach into it.")
            body.line("T.cuda.cluster_sync()")
        case "cta":
            body.line("")
            body.line("# Tensor memory is freed after its last use.")
            body.line("T.cuda.cta_sync()")
        case _:
            pass
    if kernel.spec.target.has_tmem:
        free = body.block(f"if {_FIRST_WARP}")
        form = f"tcgen05.dealloc.cta_group::{kernel.spec.pair}.sync.aligned.b32"
        free.call(f'T.ptx["{form}"]', "tmem_addr[0]", "T.uint32(TMEM_COLS)")


def _where(role: Role) -> str:
    """Return what a role does and where it runs, in the language's words."""
    groups, warps = role.placement.warpgroups, role.placement.warps

    def range_(word: str, bounds: tuple[int, int]) -> str:
        low, high = bounds
        return f"{word} {low}" if low == high else f"{word}s {low}..{high}"

    kinds = ", ".join(kind.value for kind in role.kinds)
    place = range_("warpgroup", groups) + (f" {range_('warp', warps)}" if warps else "")
    return f"{kinds}, on {place}"
