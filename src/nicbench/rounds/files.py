"""Files that workloads read or write: made on the right host, where there is room, and gone with the run."""

from __future__ import annotations

from typing import Final

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RemovePath

_SLOWEST_BYTES_PER_S: Final = 10e6
"""Of a drive that is filled."""
_SPARE_RATIO: Final = 0.05
"""Of the file, left free: a file system keeps books as well."""
_THERE: Final = 3
# $1 is the folder, $2 the file. Free bytes are those that this user may have; `df` prints a heading first.
_FREE: Final = (
    f'test ! -e "$2" || exit {_THERE}; test -d "$1" && test -w "$1" '
    '&& df --output=avail --block-size=1 -- "$1" | tail -n 1'
)
# -C: never over a file that is there already.
_FILL: Final = 'set -C; head -c "$2" /dev/urandom > "$1"'


class RoundFiles:
    """Makes files whose removal is written down before they are there."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._promised: set[tuple[str, str]] = set()
        """Host and path of each whose removal is written down."""

    async def make(self, host: Host, folder: str, name: str, size_bytes: int, *, filled: bool) -> str:
        """``folder/nicbench-RUN-name``. NotReadyError where the folder cannot be used, or has no room for the file."""
        path = f"{folder.rstrip('/')}/nicbench-{self._changes.run_id}-{name}"
        free = await host.run(("sh", "-c", _FREE, "sh", folder, path), check=False)
        if free.status == _THERE:
            step = "remove it, if nobody needs it, or name another folder"
            raise NotReadyError(f"{path} is there already and is left alone", place=host.name, next_step=step)
        if free.status != 0 or not free.stdout.strip().isdigit():
            raise NotReadyError(
                f"there is no folder {folder} that can be written to",
                place=host.name,
                next_step=f"make it there (mkdir -p {folder}), or name another folder",
            )
        needed, there = round(size_bytes * (1 + _SPARE_RATIO)), int(free.stdout.strip())
        if there < needed:
            raise NotReadyError(
                f"{folder} has {there} bytes free, and a file of {size_bytes} bytes is to be there",
                place=host.name,
                next_step="make room, name a folder on another file system, or transfer less",
            )
        content = size_bytes if filled else 0

        async def fill() -> None:
            timeout_s = 30.0 + content / _SLOWEST_BYTES_PER_S
            await host.run(("sh", "-c", _FILL, "sh", path, str(content)), timeout_s=timeout_s)

        if (host.name, path) in self._promised:
            await fill()
        else:
            self._promised.add((host.name, path))
            await self._changes.make(host, RemovePath(path=path), fill)
        return path

    async def remove(self, host: Host, path: str) -> None:
        """What the undo would do; it then finds nothing."""
        await host.run(("rm", "-f", "--", path))
