"""What stops a build, in words for the user."""

from __future__ import annotations

from pathlib import Path


class BuildProblem(Exception):
    """A kernel that cannot be built; the text says why.

    `log`: what a tool said, to be kept. `missing_tool`: nothing is wrong with the kernel.
    """

    def __init__(self, message: str, log: str = "", missing_tool: bool = False) -> None:
        super().__init__(message)
        self.log, self.missing_tool = log, missing_tool

    @staticmethod
    def of_tvm(verb: str, path: Path, error: Exception) -> BuildProblem:
        """Return the problem that TVM has with a generated module."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        telling = [line for line in lines if "rror" in line or "Check failed" in line or "reject" in line]
        reason = (telling or lines or [type(error).__name__])[0]
        return BuildProblem(f"TVM does not {verb} {path.name}: {reason}", log=str(error))
