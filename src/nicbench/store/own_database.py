"""SQLite files of ours in a folder of runs: opened with care, as anybody may have written them, and never a stranger's.

They hold what run folders say already: one that is lost or damaged is made anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nicbench.store import files

_WAIT_S: Final = 3.0
"""How long to wait for another nicbench that is writing the same file."""


class UnusableError(Exception):
    """The file must not be used or changed; the message says why."""


@dataclass(frozen=True, slots=True)
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
