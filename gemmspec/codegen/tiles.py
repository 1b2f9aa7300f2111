"""Which output tiles a persistent cluster takes: the scheduler, its import, and where the kernel starts it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.codegen.kernel import Kernel
from gemmspec.codegen.writer import Block

_ROW_BY_ROW = '''

class RowByRow(ClusterPersistentScheduler2D):
    """Groups of one tile row: none is left over, however many there are."""

    def __init__(self, *names, **counts):
        super().__init__(*names, **counts)
        self._TAIL_ROWS = 0'''


def scheduler_class(kernel: Kernel) -> Iterator[str]:
    """Yield the lines of a scheduler of the module's own, where that of TVM does not do."""
    if _row_by_row(kernel):
        yield from _ROW_BY_ROW.splitlines()


def start_tiles(kernel: Kernel, body: Block) -> None:
    """Write the scheduler, and its first tile."""
    clustered = kernel.spec.cluster.size > 1
    body.call(
        f"tiles = {'RowByRow' if _row_by_row(kernel) else 'ClusterPersistentScheduler2D'}",
        '"tiles"',
        "num_m_tiles=M_TILES",
        "num_n_tiles=N_TILES",
        f"num_clusters={'CTAS // CLUSTER' if clustered else 'CTAS'}",
        f"l2_group_size={kernel.tiling.group}",
    )
    body.line(f"tiles.init({'bx // CLUSTER' if clustered else 'bx'})")


def _row_by_row(kernel: Kernel) -> bool:
    """Say whether rows are taken one by one, and are as many as M says at launch.

    apache-tvm 0.27: `ClusterPersistentScheduler2D` then takes work modulo the rows that are left over, an expression
    that its simplifier finds to be 0, and refuses.
    """
    return kernel.tiling.group == 1 and kernel.m in kernel.dynamic
