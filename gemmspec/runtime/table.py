"""Times of kernels as measured, by setting and shape: a SQLite file that `tune` fills, or its export in JSON.

A setting is the card, its clock, the driver and the cuBLAS that times are compared with. Times of one setting can be
compared with each other; those of two cannot.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from gemmspec.runtime.problem import TableProblem

FORMAT = 1
_APPLICATION = 0x67545442  # "gTTB", in the header of the file
_SQLITE = b"SQLite format 3\0"
_WAIT_S = 30.0
_SCHEMA = f"""
CREATE TABLE setting (
    id INTEGER PRIMARY KEY, device TEXT NOT NULL, sms INTEGER NOT NULL, mhz INTEGER NOT NULL, driver TEXT NOT NULL,
    library TEXT NOT NULL, UNIQUE (device, sms, mhz, driver, library)
);
CREATE TABLE result (
    setting INTEGER NOT NULL REFERENCES setting, content TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL,
    k INTEGER NOT NULL, kernel TEXT NOT NULL, types TEXT NOT NULL, fault TEXT NOT NULL, error REAL,
    rounds INTEGER NOT NULL, ms REAL, ratio REAL, low REAL, high REAL, at TEXT NOT NULL,
    PRIMARY KEY (setting, content, m, n, k)
) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
"""
_SETTING = ("device", "sms", "mhz", "driver", "library")
_RESULT = (
    "content", "m", "n", "k", "kernel", "types", "fault", "error", "rounds", "ms", "ratio", "low", "high", "at",
)  # fmt: skip

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where times were measured. `mhz`: the highest SM clock, 0 if unknown. `library`: torch and its CUDA."""

    device: str
    sms: int
    mhz: int
    driver: str
    library: str


@dataclass(frozen=True, slots=True)
class Result:
    """One kernel at one shape. `content`: the kernel's `Kernel.content`; `types`: of A, B and D.

    A fault in words, or a time: `ms`, and cuBLAS's time over it (`ratio`, the median of so many rounds; `low` and
    `high`, their quartiles). `at`: when, in ISO 8601, UTC.
    """

    content: str
    m: int
    n: int
    k: int
    kernel: str
    types: str
    fault: str
    error: float | None
    rounds: int
    ms: float | None
    ratio: float | None
    low: float | None
    high: float | None
    at: str

    @property
    def shape(self) -> Shape:
        """M, N and K."""
        return self.m, self.n, self.k


class Table:
    """A table that is written, a SQLite file. What `write` was given is there for good when it returns.

    Raises `TableProblem`, from every method, where the file is none of ours, damaged, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _check_writable(path)
        with _told(path):
            self._connection = sqlite3.connect(path, timeout=_WAIT_S)
            if not _is_empty(self._connection):
                _check_ours(self._connection, path)
                self._connection.execute("BEGIN IMMEDIATE")  # fails here and now, where it is read-only
                self._connection.rollback()
            else:
                self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    def write(self, setting: Setting, results: Iterable[Result]) -> None:
        """Write results in one transaction, in place of older ones of the same kernels at the same shapes."""
        columns = ", ".join(("setting", *_RESULT))
        places = ", ".join("?" * (len(_RESULT) + 1))
        with _told(self._path), self._connection:
            number = self._number(setting)
            self._connection.executemany(
                f"INSERT OR REPLACE INTO result ({columns}) VALUES ({places})",
                [(number, *(getattr(result, name) for name in _RESULT)) for result in results],
            )

    def results(self, setting: Setting) -> list[Result]:
        """Return what there is of a setting."""
        return [result for where, result in _rows(self._connection, self._path) if where == setting]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _number(self, setting: Setting) -> int:
        values = tuple(getattr(setting, name) for name in _SETTING)
        self._connection.execute(
            f"INSERT OR IGNORE INTO setting ({', '.join(_SETTING)}) VALUES (?, ?, ?, ?, ?)", values
        )
        where = " AND ".join(f"{name} = ?" for name in _SETTING)
        return int(self._connection.execute(f"SELECT id FROM setting WHERE {where}", values).fetchone()[0])


def read_table(path: Path) -> list[tuple[Setting, Result]]:
    """Return all results in a table, SQLite or JSON. Raises `TableProblem`; nothing is written."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE))
            if start != _SQLITE:
                data = start + file.read()
                return _of_json(data, path)
    except OSError as error:
        raise TableProblem(f"cannot read {path}: {error.strerror}") from error
    with _told(path), closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        _check_ours(connection, path)
        return list(_rows(connection, path))


def as_json(rows: Sequence[tuple[Setting, Result]]) -> str:
    """Return a table as JSON, to be kept with kernels: the same rows give the same text."""
    settings: dict[Setting, list[Result]] = {}
    for setting, result in rows:
        settings.setdefault(setting, []).append(result)
    order = sorted(settings, key=lambda s: (s.device, s.sms, s.mhz, s.driver, s.library))
    parts = [
        {**asdict(s), "results": [asdict(r) for r in sorted(settings[s], key=lambda r: (r.shape, r.types, r.kernel))]}
        for s in order
    ]
    return json.dumps({"format": FORMAT, "settings": parts}, indent=1) + "\n"


def _of_json(data: bytes, path: Path) -> list[tuple[Setting, Result]]:
    if not data:
        raise TableProblem(f"{path} is empty")
    try:
        whole: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TableProblem(f"{path} is no table of measurements: neither SQLite nor JSON") from error
    top = cast("dict[str, Any]", whole if isinstance(whole, dict) else {})
    found = top.get("format")
    if found != FORMAT:
        raise TableProblem(f"{path} is of format {found}, and this gemmspec reads tables of format {FORMAT}")
    try:
        return [
            (_setting([part[name] for name in _SETTING]), _result([row[name] for name in _RESULT]))
            for part in cast("list[Any]", top["settings"])
            for row in part["results"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise TableProblem(f"{path} is no table of measurements ({type(error).__name__}: {error})") from error


def _rows(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[Setting, Result]]:
    columns = ", ".join([*(f"setting.{name}" for name in _SETTING), *(f"result.{name}" for name in _RESULT)])
    with _told(path):
        rows = connection.execute(
            f"SELECT {columns} FROM result JOIN setting ON result.setting = setting.id"
        ).fetchall()
    for row in rows:
        try:
            yield _setting(row[: len(_SETTING)]), _result(row[len(_SETTING) :])
        except (TypeError, ValueError) as error:
            raise TableProblem(f"{path} has a row that is no measurement: {error}") from error


def _setting(values: Sequence[Any]) -> Setting:
    device, sms, mhz, driver, library = values
    return Setting(_text(device), _whole(sms, 1), _whole(mhz, 0), _text(driver), _text(library))


def _result(values: Sequence[Any]) -> Result:
    content, m, n, k, kernel, types, fault, error, rounds, *times, at = values
    if not fault and any(time is None for time in times):
        raise ValueError(f"`{kernel}` has neither a fault nor a time")
    ms, ratio, low, high = (None if time is None else _positive(time) for time in times)
    return Result(
        _text(content), _whole(m, 1), _whole(n, 1), _whole(k, 1), _text(kernel), _text(types), _text(fault),
        None if error is None else float(error), _whole(rounds, 0), ms, ratio, low, high, _text(at),
    )  # fmt: skip


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{found!r} is no text")
    return found


def _whole(found: Any, least: int) -> int:
    if not isinstance(found, int) or found < least:
        raise ValueError(f"{found!r} is no whole number from {least}")
    return found


def _positive(found: Any) -> float:
    if not isinstance(found, (int, float)) or not 0 < found < math.inf:
        raise ValueError(f"{found!r} is no time")
    return float(found)


def _check_writable(path: Path) -> None:
    """Raise `TableProblem` where a file cannot be opened, in words that SQLite does not have."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise TableProblem(f"cannot write {path}: {error.strerror}") from error


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise TableProblem(f"{path} is a SQLite file of something else: tune has not made it")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise TableProblem(
            f"{path} is of format {version}, and this gemmspec reads tables of format {FORMAT}: tune into another file"
        )
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise TableProblem(f"{path} is damaged: {said}")


@contextmanager
def _told(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise TableProblem(f"{path}: {error}") from error
