"""From the Protocol to files: TIRx module, CUDA text, cubin, manifest."""

from gemmspec.toolchain.artifact import Artifact, Emit, NotAsProved, build
from gemmspec.toolchain.manifest import Manifest
from gemmspec.toolchain.problem import BuildProblem

__all__ = ["Artifact", "BuildProblem", "Emit", "Manifest", "NotAsProved", "build"]
