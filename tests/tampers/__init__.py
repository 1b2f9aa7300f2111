"""Ways to tamper with a generated module."""

from tampers.barriers import BARRIERS
from tampers.data import DATA
from tampers.order import ORDER
from tampers.resources import RESOURCES
from tampers.tamper import Tamper

TAMPERS = {**BARRIERS, **ORDER, **DATA, **RESOURCES}

__all__ = ["TAMPERS", "Tamper"]
