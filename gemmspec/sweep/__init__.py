"""Variants of a spec, linted and predicted: which numbers would be faster? See docs/timing.md."""

from gemmspec.sweep.run import Job, SweepProblem, Tried, ranked, run_here, run_job, run_on_dask
from gemmspec.sweep.variations import Variant, VariationError, read_variation, variants

__all__ = [
    "Job",
    "SweepProblem",
    "Tried",
    "Variant",
    "VariationError",
    "ranked",
    "read_variation",
    "run_here",
    "run_job",
    "run_on_dask",
    "variants",
]
