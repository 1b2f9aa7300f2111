"""From the Protocol to the text of a TIRx module."""

from gemmspec.codegen.module import TirxModule, lower

__all__ = ["TirxModule", "lower"]
