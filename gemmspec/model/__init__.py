"""What a spec means: `resolve` looks up its names and checks its values; `Spec` is the result."""

from gemmspec.model.resolve import resolve
from gemmspec.model.spec import Spec

__all__ = ["Spec", "resolve"]
