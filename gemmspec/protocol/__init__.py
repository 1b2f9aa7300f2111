"""From a resolved spec to the Protocol: the one description of the pipeline that everything else reads."""

from gemmspec.protocol.derive import derive
from gemmspec.protocol.program import Protocol

__all__ = ["Protocol", "derive"]
