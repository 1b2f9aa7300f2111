"""Records are dataclasses to all who use them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, fields, replace

import pytest

from gemmspec.record import record


@record
class Point:
    """A place."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        """Both."""
        return self.x + self.y


@record
class Other:
    x: int
    y: int = 2


@record
class Empty:
    pass


def test_fields_and_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(1, y=3).sum, Point.__doc__) == (1, 2, 4, "A place.")
    assert [f.name for f in fields(Point)] == ["x", "y"] and asdict(Point(1)) == {"x": 1, "y": 2}
    assert not hasattr(Point(1), "__dict__") and not hasattr(Empty(), "__dict__")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_what_is_no_field_is_an_error_each_time(values: tuple[int, ...], named: dict[str, int]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            Point(*values, **named)


def test_compared_and_hashed_by_fields() -> None:
    assert Point(1) == Point(1, 2) != Point(1, 3) and hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Other(1) and Empty() == Empty()
    assert repr(Point(1)) == "Point(x=1, y=2)" and repr(Empty()) == "Empty()"


def test_replaced_matched_and_copied() -> None:
    assert replace(Point(1), y=5) == Point(1, 5)
    with pytest.raises(TypeError):
        replace(Point(1), z=5)  # type: ignore[call-arg]
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)
