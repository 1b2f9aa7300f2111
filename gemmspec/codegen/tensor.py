"""What differs between tensor memory (tcgen05) and accumulators in registers (wgmma)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmspec.codegen.copies import stage_index, store_buffer
from gemmspec.codegen.kernel import DTYPES
from gemmspec.codegen.scope import Inside, Scope
from gemmspec.codegen.words import bare, product, span, total
from gemmspec.codegen.writer import Block
from gemmspec.protocol.program import AccRead, Mma, Slot, StoreWrite
from gemmspec.vocabulary import DType, LoopKind, RoleKind

if TYPE_CHECKING:
    from gemmspec.codegen.roles import RoleText


class Blackwell:
    """tcgen05: accumulators are columns of tensor memory, which the epilogue loads into registers by chunks."""

    def __init__(self, text: RoleText) -> None:
        self.text, self.kernel = text, text.kernel

    def declare(self, block: Block) -> None:
        """Declare the registers of a chunk."""
        if not self.text.role.does(RoleKind.EPILOGUE):
            return
        block.first.append('acc_reg = T.alloc_local((CHUNK_N,), "float32")')
        d = self.kernel.spec.gemm.d.value
        if d is not DType.F32:
            block.first.append(f'd_reg = T.alloc_local((CHUNK_N,), "{DTYPES[d]}")')

    def mma(self, mma: Mma, block: Block, scope: Scope) -> None:
        """Write the multiplies of one k tile: TIRx cuts them into instructions."""
        kernel, text = self.kernel, self.text
        start = scope.name("acc_st", self._column(mma.acc, scope))
        k = scope.index(LoopKind.K)
        a = f"{kernel.a_smem}[{stage_index(text, mma.a, scope)}{self._rows(mma, scope)}, :]"
        block.call(
            "Tx.gemm_async",
            f"tmem[:, {span(start, kernel.acc_n)}]",
            a,
            f"{kernel.b_smem}[{stage_index(text, mma.b, scope)}:, :]",
            f"accum={'False' if k == '0' else f'{k} != 0'}",
            'dispatch="tcgen05"',
            f"cta_group={'CTA_GROUP' if kernel.spec.paired else '1'}",
        )

    def acc_read(self, read: AccRead, block: Block, scope: Scope) -> None:
        """Write the load of one chunk of an accumulator into registers."""
        self.text.held = self.text.part(read.acc, self.kernel.tiling.accumulators)
        chunk = self.kernel.chunk_start(scope.index(LoopKind.CHUNK))
        start = scope.name("acc_st", total(self._column(read.acc, scope), chunk))
        block.call(
            "Tx.wg.copy_async",
            "acc_reg.view(128, CHUNK_N, layout=row_per_thread)[:, :]",
            f"tmem[:, {span(start, 'CHUNK_N')}]",
        )

    def store_write(self, write: StoreWrite, block: Block, scope: Scope) -> None:
        """Write the conversion of a chunk and its copy into a store buffer, a row a thread."""
        source = "acc_reg"
        if self.kernel.spec.gemm.d.value is not DType.F32:
            source = "d_reg"
            block.line("Tx.cast(d_reg[:], acc_reg[:])")
        target = f"{self.kernel.d_smem}[{store_buffer(self.text, write.buffer, scope)}warp_id * 32 + lane_id, :]"
        block.call("Tx.copy", target, f"{source}[:]")

    def _rows(self, mma: Mma, scope: Scope) -> str:
        """Return the index of a consumer's rows within a stage of A."""
        consumers = self.kernel.tiling.consumers
        consumer = total(self.text.me if mma.a.self_stride else "0", str(mma.a.const % consumers))
        if consumers == 1:
            return ":"
        if self.kernel.merged:
            return span(scope.name("a_st", product(consumer, "BLK_M")), "BLK_M")
        return f"{bare(consumer)}, :"

    def _column(self, acc: Slot, scope: Scope) -> str:
        n = self.kernel.tiling.accumulators
        accs = self.kernel.count(n, "ACCS")
        consumer = self.text.part(acc, n)
        slot = total(product(consumer, accs), self.text.cursors.position(acc, scope), str(acc.const % n))
        return product(slot, self.kernel.acc_n)


class Hopper:
    """wgmma: accumulators are registers of the warpgroup that multiplies, and that also stores."""

    def __init__(self, text: RoleText) -> None:
        self.text, self.kernel = text, text.kernel

    def declare(self, block: Block) -> None:
        """Declare accumulator, descriptors of the first stage, and the registers of a chunk."""
        text, kernel = self.text, self.kernel
        if text.role.does(RoleKind.MMA):
            me = total(text.me, str(text.consumer))
            stage = "0, " if kernel.tiling.stages > 1 else ""
            rows = "0" if kernel.tiling.consumers == 1 else product(me, "BLK_M") if kernel.merged else f"{bare(me)}, 0"
            registers = product(str(kernel.halves), "ACC_REGS")
            block.first.append(f'acc_reg = T.alloc_local(({registers},), "float32")')
            for name, place in (
                ("a_desc", f"{kernel.a_smem}.ptr_to([{stage}{rows}, 0])"),
                ("b_desc", f"{kernel.b_smem}.ptr_to([{stage}0, 0])"),
            ):
                block.first.append(f'{name} = T.alloc_local((1,), "uint64")')
                # Strides in 16 bytes: rows of 8 (1024 bytes) follow each other; 3 is the 128-byte swizzle.
                block.call("T.cuda.wgmma.encode_matrix_descriptor", f"T.address_of({name}[0])", place, "1", "64", "3")
        if text.role.does(RoleKind.EPILOGUE):
            block.first.append(f'd_reg = T.alloc_local((CHUNK_N // 2,), "{DTYPES[kernel.spec.gemm.d.value]}")')

    def mma(self, mma: Mma, block: Block, scope: Scope) -> None:
        """Write one group of the instructions of a k tile: those that read the same part of B follow each other."""
        text, k = self.text, scope.index(LoopKind.K)
        block.line("T.ptx.wgmma.fence.sync.aligned()")
        body = block.block("for kk in T.unroll(BLK_K // 16)")
        scope = scope.enter(Inside(LoopKind.FIXED, "kk", "BLK_K // 16", body))
        body, scope, half = self._halves(body, scope)
        a_kk = self._step("A_ATOM")
        if half != "0":
            a_kk = total(scope.name("a_kk", a_kk) if "//" in a_kk else a_kk, product(half, "A_HALF"))
        a = total(product(text.cursors.position(mma.a, scope), "A_STAGE"), a_kk)
        b = total(product(text.cursors.position(mma.b, scope), "B_STAGE"), self._step("B_ATOM"))
        body.call(
            "T.ptx[WGMMA]",
            f"*[acc_reg[{total(product(half, 'ACC_REGS'), 'i')}] for i in range(ACC_REGS)]",
            f"smem_desc_add_16B_offset(a_desc[0], {scope.name('a_step', a)})",
            f"smem_desc_add_16B_offset(b_desc[0], {scope.name('b_step', b)})",
            "kk != 0" if k == "0" else f"({k} != 0) | (kk != 0)",
            *("1", "1", "0", "0"),
        )
        block.line("T.ptx.wgmma.commit_group.sync.aligned()")

    def acc_read(self, read: AccRead, block: Block, scope: Scope) -> None:
        """Write nothing: the accumulator is in registers."""

    def store_write(self, write: StoreWrite, block: Block, scope: Scope) -> None:
        """Write the conversion of a chunk and its copy into a store buffer, as the fragments of wgmma lie."""
        text, kernel = self.text, self.kernel
        chunk = scope.index(LoopKind.CHUNK)
        # A thread holds two columns of a fragment in each register.
        first = product(chunk, "CHUNK_N // 2")
        if not kernel.even:
            start = scope.name("c_st", kernel.chunk_start(chunk))
            first = f"{start} // 2" if start != "0" else start
        block, scope, half = self._halves(block, scope)
        index = scope.free_index()
        body = block.block(f"for {index} in T.unroll(CHUNK_N // 2)")
        value = f"acc_reg[{total(product(half, 'ACC_REGS'), first, index)}]"
        d = kernel.spec.gemm.d.value
        if d is DType.F32:
            body.line(f"d_reg[{index}] = {value}")
        else:
            body.call(f"d_reg[{index}] = T.cast", value, f'"{DTYPES[d]}"')
        rows, height = ":", "BLK_M"
        if half != "0":
            rows, height = span(scope.name("h_st", product(half, "MMA_M")), "MMA_M"), "MMA_M"
        block.call(
            "Tx.wg.copy",
            f"{kernel.d_smem}[{store_buffer(text, write.buffer, scope)}{rows}, :]",
            f"d_reg.view({height}, CHUNK_N, layout=fragment)[:, :]",
        )

    def _halves(self, block: Block, scope: Scope) -> tuple[Block, Scope, str]:
        """Return where each instruction's part goes, and the index of its rows: no loop where there is one."""
        if self.kernel.halves == 1:
            return block, scope, "0"
        body = block.block("for h in T.unroll(BLK_M // MMA_M)")
        return body, scope.enter(Inside(LoopKind.FIXED, "h", "BLK_M // MMA_M", body)), "h"

    def _step(self, atom: str) -> str:
        """Return how far the k slice of an instruction lies into a stage, in 16 bytes."""
        per_atom = self.kernel.spec.target.swizzle_bytes // self.kernel.spec.target.mma_k_bytes
        if self.kernel.tiling.block_k // 16 <= per_atom:
            return "kk * 2"
        return f"kk // {per_atom} * {atom} + kk % {per_atom} * 2"
