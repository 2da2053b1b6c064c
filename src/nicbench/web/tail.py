"""Follows a file of lines as it grows, a journal or the log of a monitor: whole lines, from where it stopped last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from nicbench.core.errors import NicbenchError
from nicbench.store import files

_MOST_BYTES: Final = 4 * 2**20
"""How much is read at one time, so that the first trials of a long run are shown before its last are read."""


class Tail:
    """Reads what was appended since; begins again where the file was replaced or is shorter than it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._identity: tuple[int, int] | None = None

    def read(self) -> tuple[list[bytes], bool]:
        """Returns whole lines that are new, and whether they begin the file anew. Empty where it cannot be read."""
        try:
            stream = files.open_file(self._path)
        except (OSError, NicbenchError):
            return [], False
        with stream:
            found = os.fstat(stream.fileno())
            identity = (found.st_dev, found.st_ino)
            anew = self._identity not in (None, identity) or found.st_size < self._offset
            if anew:
                self._offset = 0
            self._identity = identity
            stream.seek(self._offset)
            read = stream.read(_MOST_BYTES)
            end = read.rfind(b"\n")
            if end < 0 and len(read) == _MOST_BYTES:  # one line that is longer than all this: up to the limit of a line
                read += stream.readline(files.LONGEST_LINE_BYTES)
                end = read.rfind(b"\n")
            whole = read[: end + 1]
        self._offset += len(whole)
        return whole.splitlines(), anew
