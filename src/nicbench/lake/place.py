"""Where a lake lies: a folder, or the address of an object store. Its files, each written whole or not at all.

``headline/year=2026/month=11/runs.parquet`` has a row for each run of that month; ``settings``, ``figures``, ``trials``
and ``rounds`` are the same. A month is one file of each table, sorted: so its bytes follow from the runs alone, whoever
gathered them, when, in how many steps, and however often that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from nicbench.core.errors import BusyError, HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.store.files import hands, storage_error, sync_folder, write_atomically, writing_atomically
from nicbench.store.index import Search, find_runs
from nicbench.store.listing import RunHeadline, time_of_name

if TYPE_CHECKING:
    from nicbench.lake.tables import Part

MOST: Final = 100_000
"""The most runs that are found in a lake at once, the newest: a search finds those that are older."""
FOLDER: Final = "lake"
"""The name of a lake in the folder of runs, where it is found without being named."""
HEADLINE, SETTINGS, FIGURES, TRIALS, ROUNDS = "headline", "settings", "figures", "trials", "rounds"
TABLES: Final = (ROUNDS, TRIALS, FIGURES, SETTINGS, HEADLINE)
"""In the order in which they are written: a run is in the lake when its headline is."""
FILE: Final = "runs.parquet"
MARK: Final = "lake.json"
FORMAT: Final = "3.0"
"""Lakes of older formats are read without conversion. In format 1 a rate with an upper bound alone was not a figure;
format 3 may have a clock with a rate, which is not read.
"""
SIGNATURE: Final = b"nicbench.lake"
"""Key of the metadata of our Parquet files; its value is the format."""
_LOCK: Final = ".lock"
_TEMPORARY: Final = re.compile(rf"\.({re.escape(FILE)}|{re.escape(MARK)})\.\d+\.tmp")
_OWN: Final = re.compile(
    rf"\.|{re.escape(MARK)}|{re.escape(_LOCK)}"
    rf"|({'|'.join(TABLES)})(/year=\d{{1,4}}(/month=\d{{1,2}}(/{re.escape(FILE)})?)?)?"
)
_YEAR, _MONTH = re.compile(r"year=(\d{1,4})"), re.compile(r"month=(\d{1,2})")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+://")
_MIND_NAMES: Final = "name another folder for the lake"


class Month(NamedTuple):
    """A month in UTC; ``Month(0, 0)`` has the runs whose time is not known."""

    year: int
    month: int

    @classmethod
    def of(cls, at: str) -> Month:
        """Returns the month of a time such as ``2026-01-31T12:00:00+00:00``."""
        return cls(int(at[:4]), int(at[5:7])) if at else cls(0, 0)

    def path(self, table: str) -> str:
        """The file of this month, below the lake."""
        return f"{table}/year={self.year}/month={self.month}/{FILE}"


def is_of_lake(lake: Path, path: Path) -> bool:
    """Whether a path is that of a folder of rows, or of a file, which gathering into this lake may make."""
    if not path.is_relative_to(lake):
        return False
    name = path.relative_to(lake)
    return bool(_OWN.fullmatch(str(name.parent if _TEMPORARY.fullmatch(path.name) else name)))


@dataclass
class Lake:
    """A lake that is there, in a folder (``local``) or in an object store, through pyarrow's file systems."""

    address: str
    local: Path | None = None
    _store: Any = field(default=None, repr=False)
    _root: str = ""

    @classmethod
    def open(cls, address: str | Path, *, create: bool = False) -> Lake:
        """Opens the lake at a path or an address such as ``s3://bucket/lake``; makes it where that is wanted.

        UsageError if it is not a lake, or ``create`` would make one of somebody else's folder.
        """
        lake = cls._at(str(address))
        mark = lake._read_mark()
        if mark is None:
            if not create:
                raise UsageError(
                    f"is no lake: it holds no {MARK}",
                    place=lake.address,
                    next_step=f"nicbench gather RUNS --into {lake.address} makes one",
                )
            if lake._is_occupied():
                raise UsageError(
                    f"is not empty and no lake: it holds no {MARK}", place=lake.address, next_step=_MIND_NAMES
                )
            lake._write_mark()
        elif _is_newer(mark):
            raise UsageError(
                f"has the format {mark}, which a newer nicbench wrote",
                place=lake.address,
                next_step="open it with that nicbench, or a newer one",
            )
        elif create and mark != FORMAT:
            lake._write_mark()  # before any row: an older nicbench is not to read what is gathered now
        return lake

    @classmethod
    def _at(cls, address: str) -> Lake:
        if not _ADDRESS.match(address):
            path = Path(address).absolute()
            return cls(str(path), path)
        if address.startswith("file://"):
            from urllib.parse import unquote, urlsplit  # imported here: seldom needed

            path = Path(unquote(urlsplit(address).path))
            return cls(str(path), path)
        import pyarrow as pa
        from pyarrow import fs

        try:
            store, root = fs.FileSystem.from_uri(address)
        except (pa.ArrowException, OSError, ValueError, ImportError) as error:
            raise UsageError(
                f"cannot be opened: {error}",
                place=address,
                next_step="name a folder, or an address like s3://bucket/lake",
            ) from error
        # Without the query and the user of the address, which may have a password.
        return cls(f"{address.partition(':')[0]}://{root.rstrip('/')}", None, store, root.rstrip("/"))

    # Files.

    def parts(self, month: Month, table: str, dictionaries: tuple[str, ...] = ()) -> list[Part]:
        """Opens the file of a month; empty if it does not exist. HostError if it is damaged, or not ours.

        ``dictionaries`` are columns that are read as dictionaries of their texts.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        from nicbench.lake.tables import Part, damaged_error  # imported here: it loads pyarrow

        name = month.path(table)
        if not self._exists(name):
            return []
        try:
            source = self.local / name if self.local is not None else self._store.open_input_file(self._path(name))
            found = pq.ParquetFile(source, read_dictionary=list(dictionaries))
        except (pa.ArrowException, OSError) as error:
            raise damaged_error(self._shown(name), error) from error
        if SIGNATURE not in (found.schema_arrow.metadata or {}):
            raise HostError(
                "is no file of nicbench, but lies where one belongs",
                place=self._shown(name),
                next_step="move it out of the lake; what was gathered of this month is gathered again",
            )
        return [Part(self._shown(name), found, number) for number in range(found.num_row_groups)]

    @contextlib.contextmanager
    def writing(self, month: Month, table: str) -> Iterator[BinaryIO]:
        """Replaces the file of a month by what is written, all or nothing; it is on disk when this ends. HostError."""
        name = month.path(table)
        if self.local is not None:
            path = self.local / name
            self._make_folders(path.parent)
            with writing_atomically(path) as stream:
                yield stream
            return
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            try:
                # An object is there when its upload is complete, so it begins when nothing can fail any more but it.
                with self._store.open_output_stream(self._path(name)) as stream:
                    shutil.copyfileobj(whole, stream)
            except OSError as error:
                raise HostError(f"cannot be written: {error}", place=self._shown(name)) from error

    def months(self, table: str = HEADLINE) -> list[Month]:
        """Lists the months that have a file of this table, oldest first."""
        found = []
        for year in self._names(table):
            for month in self._names(f"{table}/{year}") if (y := _YEAR.fullmatch(year)) else ():
                if y and (m := _MONTH.fullmatch(month)) and self._exists(f"{table}/{year}/{month}/{FILE}"):
                    found.append(Month(int(y[1]), int(m[1])))
        return sorted(found)

    def stamp(self, month: Month, table: str) -> str:
        """Returns what changes when the file of a month does; empty if it does not exist."""
        name = month.path(table)
        if self.local is not None:
            try:
                status = os.stat(self.local / name)
            except OSError:
                return ""
            return f"{status.st_mtime_ns}.{status.st_size}.{status.st_ino}"
        about = self._store.get_file_info(self._path(name))
        return f"{about.mtime_ns}.{about.size}"

    def months_of(self, ids: Iterable[str]) -> list[Month]:
        """Returns the months in which runs of these ids may be: that of the name; any where a name has no time."""
        timed = {Month.of(time_of_name(run_id)) for run_id in ids}
        return self.months() if Month(0, 0) in timed else sorted(timed)

    def strangers(self) -> list[str]:
        """Lists what does not belong into the lake. It is left alone, but a query over all files would read it."""
        found = [name for name in self._names("") if name not in (*TABLES, MARK, _LOCK)]
        for table in TABLES:
            for year in self._names(table):
                for month in self._names(f"{table}/{year}") if _YEAR.fullmatch(year) else ():
                    place = f"{table}/{year}/{month}"
                    if _MONTH.fullmatch(month):
                        found += [f"{place}/{name}" for name in self._names(place) if name != FILE]
                    else:
                        found.append(place)
                if not _YEAR.fullmatch(year):
                    found.append(f"{table}/{year}")
        return [self._shown(name) for name in sorted(found)]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lake for writing; BusyError where another process does. What a killed one left is removed.

        An object store has no locks: there it is up to the user that one process at a time writes.
        """
        if self.local is None:
            yield
            return
        path = self.local / _LOCK
        try:
            descriptor = hands().open_to_append(path)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._tidy()
            yield
        except BlockingIOError as error:
            raise BusyError(
                "another nicbench process is gathering into this lake",
                place=self.address,
                next_step="wait for it to end",
            ) from error
        finally:
            os.close(descriptor)

    def _tidy(self) -> None:
        assert self.local is not None  # noqa: S101 - of a folder alone
        for name in os.listdir(self.local):
            if _TEMPORARY.fullmatch(name):
                hands().remove(self.local / name)
        for table in TABLES:
            for path in (self.local / table).glob("year=*/month=*/.*.tmp"):
                if _TEMPORARY.fullmatch(path.name):
                    hands().remove(path)

    def _make_folders(self, path: Path) -> None:
        try:
            for each in (path.parent.parent, path.parent, path):
                if not each.is_dir():
                    hands().make_folder(each)
                    sync_folder(each.parent)
        except OSError as error:
            raise storage_error(error, path) from error

    def _read_mark(self) -> str | None:
        try:
            if self.local is not None:
                text = (self.local / MARK).read_bytes()
            elif self._exists(MARK):
                with self._store.open_input_file(self._path(MARK)) as stream:
                    text = stream.read()
            else:
                return None
            return str(json.loads(text)["format"])
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            from nicbench.lake.tables import damaged_error

            raise damaged_error(self._shown(MARK), error) from error

    def _write_mark(self) -> None:
        content = (json.dumps({"format": FORMAT, "what": "a lake of nicbench runs"}) + "\n").encode()
        if self.local is None:
            try:
                with self._store.open_output_stream(self._path(MARK)) as stream:
                    stream.write(content)
            except OSError as error:
                raise HostError(f"cannot be written: {error}", place=self.address) from error
            return
        try:
            hands().make_folder(self.local)
        except OSError as error:
            raise storage_error(error, self.local) from error
        write_atomically(self.local / MARK, content)

    def _is_occupied(self) -> bool:
        return any(not _TEMPORARY.fullmatch(name) for name in self._names(""))

    def _names(self, folder: str) -> list[str]:
        """Lists what lies in a folder of the lake; nothing where it is not there."""
        if self.local is not None:
            try:
                return sorted(os.listdir(self.local / folder))
            except (FileNotFoundError, NotADirectoryError):
                return []
            except OSError as error:
                raise storage_error(error, self.local / folder) from error
        from pyarrow import fs

        try:
            found = self._store.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        except OSError as error:
            raise HostError(f"cannot be read: {error}", place=self._shown(folder)) from error
        return sorted(each.base_name for each in found)

    def _exists(self, name: str) -> bool:
        if self.local is not None:
            return (self.local / name).is_file()
        from pyarrow import fs

        try:
            return bool(self._store.get_file_info(self._path(name)).type == fs.FileType.File)
        except OSError as error:
            raise HostError(f"cannot be read: {error}", place=self._shown(name)) from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _shown(self, name: str) -> str:
        return f"{self.address.rstrip('/')}/{name}"


def _is_newer(mark: str) -> bool:
    """Whether a lake has a later format than ours, or one that is not a number."""
    major = mark.partition(".")[0]
    return not major.isdecimal() or int(major) > int(FORMAT.partition(".")[0])


def find_lake(runs: Path, named: str | None = None) -> Lake | None:
    """Opens the lake that is named, else the one in the folder of runs (``runs/lake``), or returns None.

    UsageError if the one that is named is not a lake.
    """
    if named is not None:
        return Lake.open(named)
    return Lake.open(runs / FOLDER) if (runs / FOLDER / MARK).is_file() else None


@frozen
class Found:
    """The newest runs that were found, oldest first; how many there are of them; and how many runs there are in all."""

    runs: tuple[RunHeadline, ...]
    matching: int
    every: int


def find_together(own: Sequence[RunHeadline], lake: Lake | None, search: Search, most: int | None = None) -> Found:
    """Finds the newest runs of a folder and, if there is one, of its lake; a run of both counts once, as its folder is.

    ``own`` are all runs of the folder. HostError where a file of the lake cannot be read.
    """
    mine = find_runs(own, search)
    if lake is None:
        return Found(tuple(mine[-most:] if most else mine), len(mine), len(own))
    from nicbench.lake.searching import find_in_lake  # imported here: pyarrow loads slowly

    most = most or MOST
    found = find_in_lake(lake, search, most, [run.run_id for run in own])
    both = sorted((*found.runs, *mine), key=lambda run: run.run_id)
    return Found(tuple(both[-most:]), found.matching + len(mine), found.every + len(own))
