"""The timed model: how long a Protocol takes on a target, and who waits for what. See docs/timing.md."""

from gemmspec.timing.outcome import Prediction
from gemmspec.timing.predict import Stuck, predict

__all__ = ["Prediction", "Stuck", "predict"]
