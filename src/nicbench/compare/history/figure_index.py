"""The index of figures: what every run of a folder measured, in one SQLite file, so that 100,000 runs answer at once.

It is a cache of run folders, in a file that anybody may have written or damaged: rows that cannot be ours are left out,
and the next update makes the index anew. Where its file cannot be written it lies in a temporary folder until the
process ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from nicbench.compare.history.figures import (
    Figure,
    FigureReader,
    Measure,
    RunSettings,
    Told,
    figure_of,
    is_point,
    settings_from,
    settings_of,
)
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.frozen import frozen
from nicbench.store.files import SUMMARY
from nicbench.store.folder import RunFolder
from nicbench.store.index import OwnDatabase, UnusableError, can_be_stored
from nicbench.store.listing import RunHeadline

NAME: Final = ".figures.sqlite"
VERSION: Final = 4
"""Version of the rows: raised when they change, so that an older index is made anew."""
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
_STATEMENTS: Final = tuple(statement.strip() for statement in _TABLES.split(";"))
_DAMAGE: Final = (None, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors of a file whose content was damaged; None stands for text that Python could not decode."""


_Row = TypeVar("_Row")


@frozen
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
    _is_away: bool = False
    _has_damage: bool = False

    def __post_init__(self) -> None:
        self._database = OwnDatabase(self.parent / NAME, _APPLICATION, VERSION)

    @property
    def is_damaged(self) -> bool:
        """Whether something was found that cannot be ours; the next update makes the index anew."""
        return self._has_damage

    def update(self, runs: Sequence[RunHeadline], tell: Callable[[int, int], None]) -> None:
        """Reads every run that is new or changed, the newest first, and forgets those that are gone.

        ``tell`` is given how many of how many were read, each time what was read can be asked for. HostError where the
        index can be kept nowhere.
        """
        try:
            try:
                self._update(runs, tell)
            except sqlite3.Error:  # the disk is full, for instance
                self._move_away()
                self._update(runs, tell)
        except (sqlite3.Error, OSError) as error:
            raise HostError(
                f"the index of figures cannot be kept: {error}",
                place=str(self._database.path),
                next_step="make room there, or name another temporary folder by TMPDIR",
            ) from error

    def _update(self, runs: Sequence[RunHeadline], tell: Callable[[int, int], None]) -> None:
        self._make_ready()
        finished = {run.name: run for run in runs if run.finished and not run.trouble}
        known = self._stamps()
        if self._has_damage:
            self._make_ready()
            known = {}
        stamps = {name: stamp for name in finished if (stamp := _stamp(self.parent / name)) and can_be_stored(name)}
        gone = [name for name in known if name not in stamps]
        changed = [name for name, stamp in stamps.items() if known.get(name) != stamp]
        changed.sort(key=lambda name: finished[name].at, reverse=True)
        done = 0
        for begin in range(0, len(changed), _AT_ONCE):
            names = changed[begin : begin + _AT_ONCE]
            # All of them are forgotten first: another nicbench may have added them meanwhile.
            self._save([self._read(name, stamps[name]) for name in names], [*gone, *names])
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
        return dict(self._sound(map(_measure, rows)))

    def figures(self, measures: Iterable[int]) -> Iterator[tuple[int, str, int, Figure]]:
        """Yields each figure of these measures: its measure, the name of its run, the place of its result, itself."""
        wanted = ",".join(str(int(number)) for number in measures)
        columns = "measure, name, place, number, verdict, lower, upper, limited, near"
        rows = self._ask(f"SELECT {columns} FROM figures JOIN runs ON run = id WHERE measure IN ({wanted})")  # noqa: S608
        return self._sound(map(_figure, rows))

    def settings_of_runs(self) -> dict[str, int]:
        """Returns the number of the settings of each run."""
        rows = self._ask("SELECT name, settings FROM runs")
        return dict(self._sound(row if list(map(type, row)) == [str, int] else None for row in rows))

    def settings(self, known: Mapping[int, object]) -> dict[int, RunSettings]:
        """Returns all settings by number, but for those that are ``known``."""
        rows = self._ask("SELECT id, content FROM settings")
        return dict(self._sound(_settings(*row) for row in rows if row[0] not in known))

    def _sound(self, rows: Iterable[_Row | None]) -> Iterator[_Row]:
        """Leaves out empty rows, which nicbench never writes, and notes the damage."""
        for row in rows:
            if row is None:
                self._has_damage = True
            else:
                yield row

    def _ask(self, question: str) -> list[tuple[Any, ...]]:
        """Returns the rows; empty while the index is missing or being made."""
        path = self._database.path
        if path.is_symlink() or not path.is_file():
            return []
        try:
            with self._database.open("ro") as connection:
                return connection.execute(question).fetchall() if self._database.is_ours(connection) else []
        except sqlite3.Error as error:
            self._has_damage |= getattr(error, "sqlite_errorcode", None) in _DAMAGE
            return []
        except UnusableError:
            return []

    def _stamps(self) -> dict[str, str]:
        rows = self._ask("SELECT name, stamp FROM runs")
        return dict(self._sound(row if list(map(type, row)) == [str, str] else None for row in rows))

    def _make_ready(self) -> None:
        """Makes the tables where they are not there, or anew where they are damaged; elsewhere where that fails."""
        try:
            try:
                self._prepare()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._database.discard_damaged()
                self._prepare()
        except (sqlite3.Error, OSError, UnusableError):
            self._move_away()

    def _move_away(self) -> None:
        """Goes on in a temporary folder, with what was known; OSError and sqlite3.Error where that fails too."""
        if self._is_away:
            shutil.rmtree(self._database.path.parent, ignore_errors=True)
        folder = tempfile.mkdtemp(prefix="nicbench-figures-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        before, away = self._database, OwnDatabase(Path(folder) / NAME, _APPLICATION, VERSION)
        if not self._has_damage and before.path.is_file() and not before.path.is_symlink():
            with contextlib.suppress(sqlite3.Error, UnusableError), before.open("ro") as ours, away.open("rwc") as copy:
                if before.is_ours(ours):
                    ours.backup(copy)
        self._database, self._is_away = away, True
        try:
            self._prepare()
        except sqlite3.Error:
            away.path.unlink()
            self._prepare()

    def _prepare(self) -> None:
        """Sees to it that the tables are there and can be written."""
        if self._database.path.is_symlink():
            raise UnusableError("is no file")
        with self._database.open("rwc") as connection:
            is_ours = self._database.is_ours(connection)
            connection.execute("BEGIN IMMEDIATE")
            tables = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
            if is_ours and not self._has_damage and sorted(sql for (sql,) in tables) == sorted(_STATEMENTS):
                self._database.claim(connection)  # written to see that it can be: a file may be another user's
                connection.execute("ROLLBACK")
                return
            there = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            for kind, name in connection.execute(there).fetchall():
                quoted = name.replace('"', '""')
                connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')
            for statement in _STATEMENTS:
                connection.execute(statement)
            self._database.claim(connection)
            connection.execute("COMMIT")
        self._has_damage = False

    def _read(self, name: str, stamp: str) -> _Read:
        try:
            folder = RunFolder(self.parent / name)
            figures = tuple(self._reader.figures_of(folder))
            return _Read(name, stamp, _pack(settings_of(folder)), figures)
        except (NicbenchError, OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
            return _Read(name, stamp, _pack(RunSettings()), ())  # a run that cannot be read: the list of runs says why

    def _save(self, read: Sequence[_Read], gone: Sequence[str]) -> None:
        with self._database.open("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            _forget(connection, gone)
            for run in read:
                _add(connection, run)
            connection.execute("COMMIT")


def _figure(row: Sequence[Any]) -> tuple[int, str, int, Figure] | None:
    """Makes a figure of its row; None where the row cannot be ours."""
    measure, name, place, *told = row
    figure = figure_of(*told)
    return None if figure is None or list(map(type, (name, place))) != [str, int] else (measure, name, place, figure)


def _measure(row: Sequence[Any]) -> tuple[int, Measure] | None:
    """Makes a measure of its row; None where the row cannot be ours."""
    number, *texts, is_main, higher = row
    if not all(isinstance(text, str) for text in texts) or not is_point(texts[4]):
        return None
    test, method, configuration, scope, given, value, head, unit = texts
    told = Told(value, head, unit, bool(is_main), None if higher is None else bool(higher))
    return number, Measure(test, method, configuration, scope, given, told)


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


def _pack(settings: RunSettings) -> bytes:
    text = settings.text.encode()
    return zlib.compress(text if len(text) <= _LARGEST_SETTINGS else b"{}")


def _settings(number: int, content: object) -> tuple[int, RunSettings] | None:
    """Reads packed settings; None where they cannot be ours."""
    try:
        text = zlib.decompressobj().decompress(content, _LARGEST_SETTINGS)  # type: ignore[arg-type]
    except (zlib.error, TypeError):
        return None
    found = settings_from(text)
    return None if found is None else (number, found)
