"""The index of figures: what every run of a folder measured, in one SQLite file, so that 100,000 runs answer at once.

It is a cache of run folders. Where its file cannot be written it lies in a temporary folder until the process ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sqlite3
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nicbench.compare.history.figures import Figure, FigureReader, Measure, Told, settings_of
from nicbench.core.errors import NicbenchError
from nicbench.store.files import SUMMARY
from nicbench.store.folder import RunFolder
from nicbench.store.headline import RunHeadline
from nicbench.store.own_database import OwnDatabase, UnusableError, can_be_stored

NAME: Final = ".figures.sqlite"
VERSION: Final = 2
"""Version of the rows: raised when they get something new, so that an older index is made anew."""
_APPLICATION: Final = 0x6E_62_66_67
"""``nbfg``, which tells the index from SQLite files of other programs."""
_AT_ONCE: Final = 200
"""Runs that are saved at one time: what is read by then can be shown."""
_LARGEST_SETTINGS: Final = 2**20
_TABLES: Final = """
CREATE TABLE measures (id INTEGER PRIMARY KEY, test TEXT, method TEXT, configuration TEXT, scope TEXT, given TEXT,
    value TEXT, head TEXT, unit TEXT, main INTEGER, higher INTEGER,
    UNIQUE (test, method, configuration, scope, given, value));
CREATE TABLE settings (id INTEGER PRIMARY KEY, digest TEXT UNIQUE, content BLOB);
CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT UNIQUE, stamp TEXT, settings INTEGER);
CREATE TABLE figures (measure INTEGER, run INTEGER, place INTEGER, number REAL, verdict TEXT, lower REAL, upper REAL,
    limited TEXT, near INTEGER, PRIMARY KEY (measure, run, place)) WITHOUT ROWID
"""
_DROPPED: Final = ("measures", "settings", "runs", "figures")


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of one run; ``settings`` is its JSON, packed."""

    name: str
    stamp: str
    settings: bytes
    figures: Sequence[tuple[int, Measure, Figure]]


@dataclass
class FigureIndex:
    """The index of one folder of runs. One thread updates it; any may ask."""

    parent: Path
    _database: OwnDatabase = field(init=False)
    _reader: FigureReader = field(default_factory=FigureReader)

    def __post_init__(self) -> None:
        self._database = OwnDatabase(self.parent / NAME, _APPLICATION, VERSION)

    def update(self, runs: Sequence[RunHeadline], tell: Callable[[int, int], None]) -> None:
        """Reads every run that is new or changed, the newest first, and forgets those that are gone.

        ``tell`` is given how many of how many were read, each time what was read can be asked for.
        """
        self._make_ready()
        finished = {run.name: run for run in runs if run.finished and not run.trouble}
        known = self._stamps()
        stamps = {name: stamp for name in finished if (stamp := _stamp(self.parent / name)) and can_be_stored(name)}
        gone = [name for name in known if name not in stamps]
        changed = [name for name, stamp in stamps.items() if known.get(name) != stamp]
        changed.sort(key=lambda name: finished[name].at, reverse=True)
        done = 0
        for begin in range(0, len(changed), _AT_ONCE):
            names = changed[begin : begin + _AT_ONCE]
            self._save([self._read(name, stamps[name]) for name in names], [*gone, *(n for n in names if n in known)])
            gone = []
            done += len(names)
            tell(done, len(changed))
        if gone:
            self._save([], gone)
        tell(done, len(changed))

    def measures(self) -> dict[int, Measure]:
        """Returns everything that was measured, by number."""
        rows = self._ask(
            "SELECT id, test, method, configuration, scope, given, value, head, unit, main, higher FROM measures"
        )
        return {number: measure for number, *row in rows if (measure := _measure(row)) is not None}

    def figures(self, measures: Iterable[int]) -> Iterator[tuple[int, str, int, Figure]]:
        """Yields each figure of these measures: its measure, the name of its run, the place of its result, itself."""
        wanted = ",".join(str(int(number)) for number in measures)
        columns = "measure, name, place, number, verdict, lower, upper, limited, near"
        rows = self._ask(f"SELECT {columns} FROM figures JOIN runs ON run = id WHERE measure IN ({wanted})")  # noqa: S608
        for measure, name, place, number, verdict, lower, upper, limited, near in rows:
            is_known = _is_number(number) or (number is None and _is_number(upper))
            if is_known and all(isinstance(text, str) for text in (name, verdict)):
                bounds = (lower if _is_number(lower) else None, upper if _is_number(upper) else None)
                limit = limited if isinstance(limited, str) else None
                yield measure, name, place, Figure(number, verdict, *bounds, limit, bool(near))

    def settings_of_runs(self) -> dict[str, int]:
        """Returns the number of the settings of each run."""
        return {name: number for name, number in self._ask("SELECT name, settings FROM runs") if isinstance(name, str)}

    def settings(self, known: Mapping[int, object]) -> dict[int, dict[str, str]]:
        """Returns all settings by number, but for those that are ``known``."""
        rows = self._ask("SELECT id, content FROM settings")
        return {number: _unpack(content) for number, content in rows if number not in known}

    def _ask(self, question: str) -> list[tuple[Any, ...]]:
        """Returns the rows; none where there is no index yet, or it is being made."""
        path = self._database.path
        if path.is_symlink() or not path.is_file():
            return []
        try:
            with self._database.open("ro") as connection:
                return connection.execute(question).fetchall() if self._database.is_ours(connection) else []
        except (sqlite3.Error, UnusableError):
            return []

    def _stamps(self) -> dict[str, str]:
        return {str(name): str(stamp) for name, stamp in self._ask("SELECT name, stamp FROM runs")}

    def _make_ready(self) -> None:
        """Makes the tables where they are not there, in a temporary folder where that fails; a damaged file is lost."""
        try:
            try:
                self._prepare()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._database.discard_damaged()
                self._prepare()
        except (sqlite3.Error, OSError, UnusableError):
            folder = tempfile.mkdtemp(prefix="nicbench-figures-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._database = OwnDatabase(Path(folder) / NAME, _APPLICATION, VERSION)
            self._prepare()

    def _prepare(self) -> None:
        if self._database.path.is_symlink():
            raise UnusableError("is no file")
        with self._database.open("rwc") as connection:
            if self._database.is_ours(connection):
                return
            connection.execute("BEGIN IMMEDIATE")
            for name in _DROPPED:
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            for table in _TABLES.split(";"):
                connection.execute(table)
            self._database.claim(connection)
            connection.execute("COMMIT")

    def _read(self, name: str, stamp: str) -> _Read:
        try:
            folder = RunFolder(self.parent / name)
            figures = tuple(self._reader.figures_of(folder))
            return _Read(name, stamp, _pack(settings_of(folder)), figures)
        except (NicbenchError, OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
            return _Read(name, stamp, _pack({}), ())  # a run that cannot be read: the list of runs says why

    def _save(self, read: Sequence[_Read], gone: Sequence[str]) -> None:
        try:
            with self._database.open("rwc") as connection:
                connection.execute("BEGIN IMMEDIATE")
                _forget(connection, gone)
                for run in read:
                    _add(connection, run)
                connection.execute("COMMIT")
        except sqlite3.Error:
            return  # the next time the same runs are read again


def _is_number(value: object) -> bool:
    """Whether a column has a number: a file in a folder may be anybody's."""
    return isinstance(value, float) and math.isfinite(value)


def _measure(row: Sequence[Any]) -> Measure | None:
    """Makes a measure of its row; None where the row is not ours: a file in a folder may be anybody's."""
    *texts, is_main, higher = row
    if not all(isinstance(text, str) for text in texts):
        return None
    test, method, configuration, scope, given, value, head, unit = texts
    told = Told(value, head, unit, bool(is_main), None if higher is None else bool(higher))
    return Measure(test, method, configuration, scope, given, told)


def _forget(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    numbers = [
        number
        for name in names
        for (number,) in connection.execute("SELECT id FROM runs WHERE name = ?", (name,)).fetchall()
    ]
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        marks = ",".join("?" * len(some))
        connection.execute(f"DELETE FROM figures WHERE run IN ({marks})", some)  # noqa: S608 - question marks
        connection.execute(f"DELETE FROM runs WHERE id IN ({marks})", some)  # noqa: S608


def _add(connection: sqlite3.Connection, run: _Read) -> None:
    digest = hashlib.sha256(run.settings).hexdigest()
    connection.execute("INSERT OR IGNORE INTO settings (digest, content) VALUES (?, ?)", (digest, run.settings))
    (settings,) = connection.execute("SELECT id FROM settings WHERE digest = ?", (digest,)).fetchone()
    added = connection.execute(
        "INSERT INTO runs (name, stamp, settings) VALUES (?, ?, ?)", (run.name, run.stamp, settings)
    )
    number = added.lastrowid
    rows = [(_number_of(connection, measure), number, place, *figure) for place, measure, figure in run.figures]
    connection.executemany("INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _number_of(connection: sqlite3.Connection, measure: Measure) -> int:
    key = (*measure[:5], measure.told.value)
    found = connection.execute(
        "SELECT id FROM measures WHERE test = ? AND method = ? AND configuration = ? AND scope = ? AND given = ?"
        " AND value = ?",
        key,
    ).fetchone()
    if found is not None:
        return int(found[0])
    told = measure.told
    added = connection.execute(
        "INSERT INTO measures (test, method, configuration, scope, given, value, head, unit, main, higher)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, told.head, told.unit, told.is_main, told.higher_is_better),
    )
    return int(added.lastrowid or 0)


def _stamp(folder: Path) -> str | None:
    try:
        status = os.stat(f"{folder}/{SUMMARY}")
    except OSError:
        return None
    return f"{status.st_mtime_ns}.{status.st_size}"


def _pack(settings: Mapping[str, str]) -> bytes:
    return zlib.compress(json.dumps(settings, sort_keys=True).encode())


def _unpack(content: object) -> dict[str, str]:
    """Reads packed settings; none where they are not ours: a file in a folder may be anybody's."""
    try:
        text = zlib.decompressobj().decompress(content, _LARGEST_SETTINGS)  # type: ignore[arg-type]
        found = json.loads(text)
    except (zlib.error, ValueError, TypeError, RecursionError):
        return {}
    members = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in members if isinstance(value, str)}
