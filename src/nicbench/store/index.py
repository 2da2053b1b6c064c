"""The index of a folder of runs: their headlines in one SQLite file, so that a list need not open every folder.

The run folders are the truth, and the index is made of them: who removes ``.index.sqlite`` loses nothing. Each call
looks at every folder's times and sizes (its *stamp*) and reads those that are new or changed. An index that cannot be
used (damaged, of another program, of a newer nicbench, not to be written) is made anew or passed over with a note.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nicbench.store.headline import RunHeadline, line_of, of_line
from nicbench.store.names import JOURNAL, SUMMARY, TAGS

if TYPE_CHECKING:
    from nicbench.store.listing import Tell

NAME: Final = ".index.sqlite"
VERSION: Final = 3
"""Of what is kept: raised where a headline has something new, so that an older index is made anew."""
_APPLICATION: Final = 0x6E_62_69_78
"""``nbix``: by it SQLite files of other programs are told apart."""
_WAIT_S: Final = 3.0
"""For another nicbench that is writing the same index."""
_FRESH_NS: Final = 2_000_000_000
"""A folder that was changed so shortly ago may change again without another time on it: it is read again next time."""
_WATCHED: Final = (JOURNAL, SUMMARY, TAGS)
"""What a stamp is of besides the folder itself, where files come, go and are replaced: files that are written into."""
_ABSENT: Final = "-"


@dataclass(frozen=True, slots=True)
class Indexed:
    """The runs, oldest first; how many folders were read for it; and what the user should know of the index."""

    runs: tuple[RunHeadline, ...]
    read: int
    notes: tuple[str, ...] = ()


class _UnusableError(Exception):
    """Why an index is passed over."""


def indexed_runs(parent: Path, tell: Tell, *, rebuild: bool = False) -> Indexed:
    """Every run under ``parent`` as its folder is now. ``tell`` has a line on what a run found.

    ``rebuild`` reads every folder anew. NicbenchError never; OSError where ``parent`` itself cannot be read.
    """
    if not parent.is_dir():
        return Indexed((), 0)
    notes: list[str] = []
    known: Mapping[str, tuple[str, str]] = {}
    usable = True
    if not rebuild:
        try:
            known = _load(parent / NAME)
        except _UnusableError as error:
            usable = False
            notes.append(f"{parent / NAME}: {error}: passed over, every run folder was read")
        except sqlite3.DatabaseError as error:
            notes.append(f"{parent / NAME}: {error}: the index was made anew")
            rebuild = True
    now_ns = time.time_ns()
    kept: dict[str, RunHeadline] = {}
    changed: dict[str, tuple[str, RunHeadline]] = {}
    place = str(parent / "-")[:-1]  # once, not for each of ten thousand
    for name, (stamp, newest_ns) in _stamps(parent, known).items():
        before = known.get(name)
        run = of_line(name, place + name, before[1]) if before is not None and before[0] == stamp else None
        if run is not None:
            kept[name] = run
        elif (run := _read(parent / name, tell)) is not None:
            # A folder that may not be read is looked at again: rights have no part in its stamp.
            lasts = newest_ns < now_ns - _FRESH_NS and _NOT_READ not in (run.trouble or "")
            changed[name] = (stamp if lasts else "", run)
    every = kept | {name: run for name, (_, run) in changed.items()}
    gone = known.keys() - every.keys()
    if usable and (changed or gone or rebuild):
        note = _save(parent / NAME, changed, gone, rebuild=rebuild)
        notes += [note] if note else []
    return Indexed(tuple(every[name] for name in sorted(every)), len(changed), tuple(notes))


_NOT_READ: Final = "cannot be read"
"""So does ``storage_error`` begin, too."""


def _read(path: Path, tell: Tell) -> RunHeadline | None:
    """The headline from a folder itself; None where it is not that of a run."""
    from nicbench.store.folder import is_run_folder  # here: most lists read no folder, and loading this takes long
    from nicbench.store.listing import headline, unreadable

    try:
        return headline(path, tell) if is_run_folder(path) else None
    except OSError as error:  # of somebody else's folder: the other runs are listed all the same
        return unreadable(path, f"{_NOT_READ}: {error.strerror or error}")


def _stamps(parent: Path, known: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, int]]:
    """Of every folder under ``parent``: times and sizes of what is watched, and the newest time.

    A folder has another time as soon as a file came into it: what was ``known`` to be absent need not be looked for.
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


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Rolled back where it is not committed. No write-ahead log: it does not work on folders of other machines."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        yield connection
    finally:
        connection.close()


def _load(path: Path) -> dict[str, tuple[str, str]]:
    """Stamp and headline by the folder's name; nothing where there is no index yet or it is of an older nicbench."""
    if not path.exists() and not path.is_symlink():
        return {}
    if path.is_symlink() or not path.is_file():
        raise _UnusableError("is no file")
    try:
        with _opened(path, "ro") as connection:
            if not _is_ours(connection):
                return {}
            rows = connection.execute("SELECT name, stamp, headline FROM runs")
            return {
                name: (stamp, text)
                for name, stamp, text in rows
                if all(isinstance(x, str) for x in (name, stamp, text)) and stamp.count(" ") in (0, len(_WATCHED))
            }
    except sqlite3.OperationalError as error:
        if "no such" in str(error):  # table or column: ours by its mark alone
            raise sqlite3.DatabaseError(str(error)) from error
        raise _UnusableError(str(error)) from error


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Whether it holds rows as this nicbench writes them; _UnusableError where it must not be touched."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != _APPLICATION:
        if application or tables:
            raise _UnusableError("belongs to another program")
        return False  # empty: nobody's
    if version > VERSION:
        raise _UnusableError("was written by a newer nicbench")
    return bool(version == VERSION)


def _save(path: Path, changed: Mapping[str, tuple[str, RunHeadline]], gone: set[str], *, rebuild: bool) -> str | None:
    """All or nothing. A sentence where it cannot be kept, which costs time and nothing else."""
    try:
        if rebuild:
            _discard_damaged(path)
        with _opened(path, "rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            if rebuild or not _is_ours(connection):
                connection.execute("DROP TABLE IF EXISTS runs")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, stamp TEXT, headline TEXT) WITHOUT ROWID"
            )
            connection.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in gone])
            connection.executemany(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)",
                [(name, stamp, line_of(run)) for name, (stamp, run) in changed.items() if _is_text(name)],
            )
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError, _UnusableError) as error:
        return f"{path}: the index could not be kept ({error}): the next call reads the same folders again"
    return None


def _is_text(name: str) -> bool:
    """A folder's name may be bytes that are none: such a run is read each time."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _discard_damaged(path: Path) -> None:
    """Removes an index that SQLite cannot read; one of another program stays, and is passed over."""
    if not path.is_file() or path.is_symlink():
        return
    try:
        with _opened(path, "ro") as connection:
            _is_ours(connection)
            if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return
    except sqlite3.OperationalError:
        return  # in use, or not to be opened: writing says so
    except sqlite3.DatabaseError:
        pass
    for each in (path, path.with_name(f"{path.name}-journal")):
        each.unlink(missing_ok=True)
