"""Which card is at hand, at which clocks: what a measurement is worth nothing without."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import Any

_ASKED = {
    "driver": "driver_version",
    "sm_mhz": "clocks.sm",
    "max_sm_mhz": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
}


class NoGpu(Exception):
    """There is nothing to measure on; the text says why."""


def count() -> int:
    """Return how many devices torch sees. Raises `NoGpu` where that is none."""
    return int(_torch().cuda.device_count())


def card() -> dict[str, Any]:
    """Return what torch and nvidia-smi say of the current device. Raises `NoGpu`."""
    torch = _torch()
    device = torch.cuda.current_device()
    has = torch.cuda.get_device_properties(device)
    # CUDA_VISIBLE_DEVICES numbers devices anew, and nvidia-smi does not know of it.
    uuid = getattr(has, "uuid", None)
    return {
        "device": str(has.name),
        "capability": f"{has.major}.{has.minor}",
        "sms": int(has.multi_processor_count),
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda),
        **state(device if uuid is None else f"GPU-{uuid}"),
    }


def state(device: int | str = 0) -> dict[str, str]:
    """Return clocks, power and temperature of a device now, by its number or UUID for nvidia-smi.

    Nothing where there is no nvidia-smi.
    """
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    command = [tool, f"--id={device}", f"--query-gpu={','.join(_ASKED.values())}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in said.strip().split(",")]
    return dict(zip(_ASKED, values, strict=True)) if len(values) == len(_ASKED) else {}


def _torch() -> Any:
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise NoGpu("torch is not installed (pip install 'gemmspec[torch]')") from error
    if not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "torch sees no CUDA device"
        raise NoGpu(why)
    return torch
