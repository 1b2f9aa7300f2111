"""GPUs that are none, for tests of `tune`: what a kernel does is in its name, and each measurement is written down.

Run as a script, this is `gemmspec tune` on a machine with as many such GPUs as GPUS says.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gemmspec.runtime.card import NoGpu
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.measure import Checked, Shape, Timing
from gemmspec.runtime.problem import ArgumentProblem
from gemmspec.runtime.table import Setting
from gemmspec.runtime.worker import TooLarge

SETTING = Setting("fake H200", 132, 1980, "580.0", "torch 0, CUDA 0")


def ratio(name: str, shape: Shape) -> float:
    """What is measured: odd kernels are fast at odd multiples of 128, even ones at even."""
    number = int("".join(c for c in name if c.isdigit()) or 0)
    return 1.0 + (0.1 if shape[0] // 128 % 2 == number % 2 else 0.0) - number / 1000


def write_down(line: str) -> None:
    """Append a line to the log, whole."""
    handle = os.open(os.environ["TUNE_LOG"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


class Fake:
    """A GPU."""

    def __init__(self, number: int) -> None:
        if os.environ.get("GPU_GONE") == str(number):
            raise NoGpu("torch sees no CUDA device")
        self.number = number
        other = os.environ.get("OTHER_CARD") == str(number)
        self.setting = Setting("fake H100", 114, 1755, "580.0", "torch 0, CUDA 0") if other else SETTING
        self.capability = (9, 0)

    def check(self, kernel: Kernel, shape: Shape) -> Checked:
        match kernel.name.rstrip("0123456789"):
            case "hangs":
                write_down(f"hangs {self.number}")
                time.sleep(1000)
            case "dies":
                write_down(f"dies {self.number}")
                os.kill(os.getpid(), signal.SIGKILL)
            case "breaks":
                write_down(f"breaks {self.number}")
                raise RuntimeError("CUDA error: an illegal memory access was encountered\nand advice")
            case "refused":
                raise ArgumentProblem("`A` is nothing")
            case "wrong":
                return Checked(0.5, "relative error 5.00e-01, and 6e-04 is the most")
            case _:
                pass
        if shape[0] >= 1 << 20:
            raise TooLarge("too large")
        return Checked(2e-4, "")

    def race(
        self, kernels: Mapping[str, Kernel], shape: Shape, rounds: int, beat: Callable[[str], None]
    ) -> Mapping[str, Timing]:
        start = time.time()
        for name in kernels:
            beat(f"{name} {shape}")
            time.sleep(float(os.environ.get("RACE_S", "0")))
        for name in kernels:
            write_down(f"race {self.number} {name} {shape[0]} {start} {time.time()}")
        made = {name: ratio(name, shape) for name in kernels}
        return {name: Timing(1 / r, 100.0, r, (r - 0.01, r + 0.01)) for name, r in made.items()}


def main() -> None:
    """Run the command line with these GPUs in place of real ones."""
    from gemmspec import cli
    from gemmspec.runtime import card, gpu

    def count() -> int:
        if os.environ["GPUS"] == "0":
            raise NoGpu("torch sees no CUDA device")
        return int(os.environ["GPUS"])

    import tuning_fake  # by its name, so that workers find it

    card.count, gpu.Gpu = count, tuning_fake.Fake  # type: ignore[assignment, misc]
    sys.argv[0] = "gemmspec"
    cli.main()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
