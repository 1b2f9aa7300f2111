"""The table of targets. A new one is one file and one line here."""

from gemmspec.targets.sm90 import SM_90A
from gemmspec.targets.sm100 import SM_100A
from gemmspec.targets.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (SM_100A, SM_90A)}

__all__ = ["TARGETS", "Target"]
