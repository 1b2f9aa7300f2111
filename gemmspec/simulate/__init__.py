"""Execution of a Protocol on numbers, under an adversarial schedule. Imports NumPy; import it only to run it."""

from gemmspec.simulate.outcome import Fault, Outcome, Place, Waiting
from gemmspec.simulate.problem import Problem, prepare
from gemmspec.simulate.run import simulate

__all__ = ["Fault", "Outcome", "Place", "Problem", "Waiting", "prepare", "simulate"]
