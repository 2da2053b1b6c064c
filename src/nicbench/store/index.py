"""The index of a folder of runs: their headlines in one SQLite file, and the search among them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.store import files
from nicbench.store.files import JOURNAL, SUMMARY, TAGS
from nicbench.store.listing import RunHeadline, line_of, of_line

if TYPE_CHECKING:
    from nicbench.store.listing import Tell


# SQLite files of ours in a folder of runs: opened with care, as anybody may have written them, and never a
# stranger's.  They hold what run folders say already: one that is lost or damaged is made anew.

_WAIT_S: Final = 3.0
"""How long to wait for another nicbench that is writing the same file."""


class UnusableError(Exception):
    """The file must not be used or changed; the message says why."""


@frozen
class OwnDatabase:
    """A database at a path, marked as ours by its ``application``; ``version`` is that of its rows."""

    path: Path
    application: int
    version: int

    @contextlib.contextmanager
    def open(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Opens it; what is not committed is rolled back. No write-ahead log: it fails on network file systems.

        ``mode`` is SQLite's: ``ro`` or ``rwc``. sqlite3.Error where it cannot be opened or read. Where this process may
        not write beside it, a copy is changed, which takes its place (``files.Hands``).
        """
        if mode != "ro" and not os.access(self.path.parent, os.W_OK):
            with files.hands().writing(self.path) as whole, tempfile.TemporaryDirectory() as folder:
                copy = OwnDatabase(Path(folder) / self.path.name, self.application, self.version)
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(self.path, copy.path)
                with copy.open(mode) as connection:
                    yield connection
                whole.write(copy.path.read_bytes())
            return
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            yield connection
        finally:
            connection.close()

    def is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file holds rows of this version. UnusableError where it must not be touched."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != self.application:
            if application or tables:
                raise UnusableError("belongs to another program")
            return False  # empty: nobody's
        if version > self.version:
            raise UnusableError("was written by a newer nicbench")
        return bool(version == self.version)

    def claim(self, connection: sqlite3.Connection) -> None:
        """Marks the file as ours, of this version."""
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {self.version}")

    def discard_damaged(self) -> None:
        """Removes a file that SQLite cannot read; one of another program stays."""
        if not self.path.is_file() or self.path.is_symlink():
            return
        try:
            with self.open("ro") as connection:
                self.is_ours(connection)
                if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return
        except sqlite3.OperationalError:
            return  # in use, or may not be opened: writing reports it
        except sqlite3.DatabaseError:
            pass
        for each in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            files.hands().remove(each)


def can_be_stored(name: str) -> bool:
    """Whether a folder's name is valid text; a run with another name is read each time."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


NAME: Final = ".index.sqlite"
VERSION: Final = 4
"""Version of the rows: raised when a headline gets something new, so that an older index is rebuilt."""
_APPLICATION: Final = 0x6E_62_69_78
"""``nbix``, which tells the index from SQLite files of other programs."""
_FRESH_NS: Final = 2_000_000_000
"""A folder changed so recently may change again without a new timestamp, so it is read again next time."""
_WATCHED: Final = (JOURNAL, SUMMARY, TAGS)
"""Files whose times are part of a stamp, because writing into them does not change the time of the folder."""
_ABSENT: Final = "-"
_NOT_READ: Final = "cannot be read"
"""The beginning of the trouble of a folder that cannot be read, also in ``storage_error``."""
_SEARCHED: Final = ("run_id", "title", "tags", "cards", "kernels", "drivers", "methods", "configurations")
"""Fields of a headline in which words are searched."""
_TIME: Final = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d)?)?)?)?")


# Search among headlines.


@frozen
class Search:
    """Conditions that a run must meet, all of them; an empty one selects every run. Case does not matter.

    ``words`` match anywhere in a headline, ``cards`` and ``drivers`` anywhere in a name, ``kernels`` the beginning of a
    release up to a separator (6.1 matches 6.1.90 and not 6.18), ``tags`` and ``methods`` whole names. Any of several
    cards, kernels or drivers suffices; all words, tags and methods are required. ``since`` and ``until`` are inclusive
    times in UTC: 2026, 2026-01, 2026-01-31 or 2026-01-31T12:30.
    """

    words: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None


def moment(text: str, option: str) -> str:
    """Returns a time for ``Search``. UsageError if the text is not a time."""
    if not (_TIME.fullmatch(text) and _exists(text)):
        raise UsageError(f"{text!r} is no date", place=option, next_step="write it like 2026, 2026-01 or 2026-01-31")
    return text


def _exists(text: str) -> bool:
    """Whether a date exists, unlike the 31st of February; missing parts are the first month, day or minute."""
    try:
        datetime.fromisoformat(text + "0000-01-01T00:00"[len(text) :] if len(text) != 13 else f"{text}:00")
    except ValueError:
        return False
    return True


class Condition(NamedTuple):
    """One of these fields of a headline has a text for which ``holds``; ``word`` is what a text must contain for it."""

    fields: tuple[str, ...]
    holds: Callable[[str], bool]
    word: str = ""


def conditions_on_texts(search: Search) -> Iterator[Condition]:
    """Yields what a search asks of texts, what costs least first. Times are compared by those who have the runs."""
    for field, parts in (("cards", search.cards), ("drivers", search.drivers)):
        if parts:
            yield Condition((field,), partial(_has_a_part, [part.casefold() for part in parts]))
    if search.kernels:
        yield Condition(("kernels",), lambda release: any(is_release(one, release) for one in search.kernels))
    for field, names in (("tags", search.tags), ("methods", search.methods)):
        for name in names:
            yield Condition((field,), partial(_is_equal, name.casefold()))
    for word in map(str.casefold, search.words):
        yield Condition(_SEARCHED, partial(_has_a_part, [word]), word)


def _is_equal(folded: str, text: str) -> bool:
    return text.casefold() == folded


def _has_a_part(parts: Sequence[str], text: str) -> bool:
    text = text.casefold()
    return any(part in text for part in parts)


def is_release(wanted: str, release: str) -> bool:
    """Whether a kernel's release is the one that is wanted, or begins with it: 6.1 is 6.1.90 and not 6.18."""
    wanted, release = wanted.casefold(), release.casefold()
    return release.startswith(wanted) and not (release[len(wanted) :][:1].isdigit() and wanted[-1:].isdigit())


def find_runs(runs: Sequence[RunHeadline], search: Search) -> Sequence[RunHeadline]:
    """Returns the runs that meet a search, in their order."""
    since, until = search.since or "", search.until or ""
    if since or until:
        runs = [
            run
            for run in runs
            if run.at and run.at[: len(since)] >= since and (run.at[: len(until)] <= until or not until)
        ]
    for fields, holds, _ in conditions_on_texts(search):
        known = lru_cache(maxsize=4096)(holds)  # the same few names stand in thousands of runs
        runs = [run for run in runs if any(known(text) for field in fields for text in _texts(getattr(run, field)))]
    return runs


def _texts(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,) if value else ()


# The index file.


@frozen
class IndexedRuns:
    """The runs, oldest first; how many folders were read for them; and notes on the index for the user."""

    runs: tuple[RunHeadline, ...]
    read: int
    notes: tuple[str, ...] = ()


def list_indexed_runs(parent: Path, tell: Tell, *, rebuild: bool = False) -> IndexedRuns:
    """Lists every run under ``parent`` as its folder is now. ``tell`` returns a line on the results of a run.

    ``rebuild`` reads every folder again. Raises no NicbenchError; OSError where ``parent`` itself cannot be read.
    """
    if not parent.is_dir():
        return IndexedRuns((), 0)
    notes = []
    known = {}
    usable = True
    if not rebuild:
        try:
            known = _load(parent / NAME)
        except UnusableError as error:
            usable = False
            notes.append(f"{parent / NAME}: {error}: passed over, every run folder was read")
        except sqlite3.DatabaseError as error:
            notes.append(f"{parent / NAME}: {error}: the index was made anew")
            rebuild = True
    now_ns = time.time_ns()
    kept = {}
    changed = {}
    place = str(parent / "-")[:-1]  # once, not for each of ten thousand
    for name, (stamp, newest_ns) in _stamps(parent, known).items():
        before = known.get(name)
        run = of_line(name, place + name, before[1]) if before is not None and before[0] == stamp else None
        if run is not None:
            kept[name] = run
        elif (run := _read(parent / name, tell)) is not None:
            # A folder that may not be read is tried again: permissions are not part of its stamp.
            lasts = newest_ns < now_ns - _FRESH_NS and _NOT_READ not in (run.trouble or "")
            changed[name] = (stamp if lasts else "", run)
    every = kept | {name: run for name, (_, run) in changed.items()}
    gone = known.keys() - every.keys()
    if usable and (changed or gone or rebuild):
        note = _save(parent / NAME, changed, gone, rebuild=rebuild)
        notes += [note] if note else []
    return IndexedRuns(tuple(every[name] for name in sorted(every)), len(changed), tuple(notes))


def newest_known(parent: Path, most: int) -> tuple[tuple[RunHeadline, ...], int]:
    """Returns the newest runs as the index has them, and how many it knows; the folders themselves are not looked at.

    Nothing without a usable index: reading the runs tells why.
    """
    path, place = parent / NAME, str(parent / "-")[:-1]
    if path.is_symlink() or not path.is_file():
        return (), 0
    try:
        with _database(path).open("ro") as connection:
            if not _database(path).is_ours(connection):
                return (), 0
            (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
            rows = connection.execute("SELECT name, headline FROM runs ORDER BY name DESC LIMIT ?", (most,)).fetchall()
    except (sqlite3.Error, UnusableError):
        return (), 0
    found = (
        of_line(name, place + name, line) for name, line in rows if isinstance(name, str) and isinstance(line, str)
    )
    return tuple(without_none(found)), int(count)


def _read(path: Path, tell: Tell) -> RunHeadline | None:
    """Makes the headline from the folder itself; None if it is not a run folder."""
    from nicbench.store.folder import is_run_folder  # imported here: most lists read no folder, and loading is slow
    from nicbench.store.listing import headline, unreadable

    try:
        return headline(path, tell) if is_run_folder(path) else None
    except OSError as error:  # another user's folder, for instance: the other runs are listed all the same
        return unreadable(path, f"{_NOT_READ}: {error.strerror or error}")


def _stamps(parent: Path, known: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, int]]:
    """Returns for every folder under ``parent`` its stamp (times and sizes of what is watched) and its newest time.

    A folder's time changes when a file is added: while it is the same, files ``known`` to be absent are not looked for.
    """
    found = {}
    stat = os.stat  # not Path.stat: for 30,000 files it would take half a second
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    for name in names:
        path = f"{parent}/{name}"
        try:
            status = stat(path)
        except OSError:
            continue  # gone meanwhile
        newest_ns = status.st_mtime_ns
        parts = [f"{newest_ns}.{status.st_size}"]
        before = known[name][0].split(" ") if name in known else [""]
        same = before[0] == parts[0]
        for number, watched in enumerate(_WATCHED, 1):
            if same and before[number] == _ABSENT:
                parts.append(_ABSENT)
                continue
            try:
                status = stat(f"{path}/{watched}")
            except OSError:
                parts.append(_ABSENT)
                continue
            parts.append(f"{status.st_mtime_ns}.{status.st_size}")
            newest_ns = max(newest_ns, status.st_mtime_ns)
        found[name] = (" ".join(parts), newest_ns)
    return found


def _database(path: Path) -> OwnDatabase:
    return OwnDatabase(path, _APPLICATION, VERSION)


def _load(path: Path) -> dict[str, tuple[str, str]]:
    """Reads stamps and headline lines by folder name; empty if the index is missing or of an older version."""
    if not path.exists() and not path.is_symlink():
        return {}
    if path.is_symlink() or not path.is_file():
        raise UnusableError("is no file")
    try:
        with _database(path).open("ro") as connection:
            if not _database(path).is_ours(connection):
                return {}
            rows = connection.execute("SELECT name, stamp, headline FROM runs")
            return {
                name: (stamp, text)
                for name, stamp, text in rows
                if all(isinstance(x, str) for x in (name, stamp, text)) and stamp.count(" ") in (0, len(_WATCHED))
            }
    except sqlite3.OperationalError as error:
        # No such table or column: ours by its mark alone. Without a code of SQLite, a text in it is no UTF-8.
        if "no such" in str(error) or getattr(error, "sqlite_errorcode", None) is None:
            raise sqlite3.DatabaseError(str(error)) from error
        raise UnusableError(str(error)) from error


def _save(path: Path, changed: Mapping[str, tuple[str, RunHeadline]], gone: set[str], *, rebuild: bool) -> str | None:
    """Saves changes, all or nothing. Returns a note where that fails, which only costs time in the next call."""
    try:
        if rebuild:
            _database(path).discard_damaged()
        with _database(path).open("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            if rebuild or not _database(path).is_ours(connection):
                connection.execute("DROP TABLE IF EXISTS runs")
                _database(path).claim(connection)
            connection.execute(
                "CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, stamp TEXT, headline TEXT) WITHOUT ROWID"
            )
            connection.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in gone])
            connection.executemany(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)",
                [(name, stamp, line_of(run)) for name, (stamp, run) in changed.items() if can_be_stored(name)],
            )
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError, UnusableError) as error:
        return f"{path}: the index could not be kept ({error}): the next call reads the same folders again"
    return None
