"""Files that clients leave on their hosts: a folder of ours for each of them, fetched, kept, and gone with the run."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.round import Round
from nicbench.hosts.base import Host
from nicbench.store.files import storage_error
from nicbench.store.folder import FRAMES
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath
from nicbench.workloads.base import Keeper, LeftFile, StoredFile
from nicbench.workloads.processes import safe_name

if TYPE_CHECKING:
    from nicbench.store.samples import Samples

# In memory, so that writing them is no load on a drive that is measured, and of several places the one with most room.
_PLACE: Final = """
usable() { [ -n "$1" ] && [ -d "$1" ] && [ -w "$1" ] && [ -x "$1" ]; }
most=$(for each in /dev/shm /run "$XDG_RUNTIME_DIR"; do
    usable "$each" && echo "$(df --output=avail,fstype -k "$each" | tail -n 1) $each"
done | grep ' tmpfs ' | sort -n | tail -n 1)
for each in "${most##* tmpfs }" "$TMPDIR" /tmp /var/tmp; do
    usable "$each" && echo "$each" && exit
done
exit 1
"""
_COPIES: Final = ".left"
"""In the run folder, while a round is being kept, of hosts whose files are not this machine's."""


@dataclass
class _OfRound:
    """What one round has left so far."""

    id: str
    samples: dict[int, Samples] = field(default_factory=dict)
    """By job, from 1."""
    folders: dict[str, Host] = field(default_factory=dict)
    """That are to be removed."""


class LeftFiles(Keeper):
    """Begin each round with ``begin``, and end it with ``keep``, once it is known what it was."""

    def __init__(self, changes: Changes, run_folder: Path) -> None:
        self._changes = changes
        self._run_folder = run_folder
        self._round = _OfRound("r0000")
        self._folders: dict[str, str] = {}
        """By host, each with its removal written down."""
        self._making = asyncio.Lock()

    def begin(self, round_id: str) -> None:
        """The files of the next round. What a run that was killed before it could journal this one had kept goes."""
        self._round = _OfRound(round_id)
        (self._run_folder / _samples_path(round_id)).unlink(missing_ok=True)

    async def folder(self, host: Host, job: int) -> str:
        async with self._making:  # the jobs of a round come together
            if host.name not in self._folders:
                self._folders[host.name] = await self._make(host)
            of_round = f"{self._folders[host.name]}/{self._round.id}"
            if of_round not in self._round.folders:
                # Of a try whose removal failed something may be there.
                await host.run(("rm", "-rf", "--", of_round))
                self._round.folders[of_round] = host
        path = f"{of_round}/{job}"
        await host.run(("mkdir", "-p", "--", path))
        return path

    async def take(self, host: Host, job: int, left: LeftFile, path: str) -> StoredFile:
        from nicbench.store import samples  # here: most rounds leave nothing, and loading it takes long

        copy = self._run_folder / _COPIES / f"{self._round.id}-{job}-{safe_name(left.name)}"
        try:
            here = Path(path) if host.shares_files else await _fetch(host, path, copy)
            taken = await asyncio.to_thread(samples.check_samples, here)
        except NicbenchError as error:
            step = f"; next: {error.next_step}" if error.next_step else ""
            return StoredFile(notes=(f"its {left.what} are lost: {path} on {host.name}: {error.message}{step}",))
        except OSError as error:  # of the copy
            raise storage_error(error, copy) from error
        self._round.samples[job] = taken
        notes = (f"the last of its {left.what} was cut short, and left out",) if taken.cut_bytes else ()
        return StoredFile(files=(_samples_path(self._round.id),), notes=notes)

    async def keep(self, one: Round) -> None:
        """Writes what ``take`` took into the run folder, before the round is journaled, and removes what was left."""
        if self._round.samples:
            from nicbench.store import samples  # as above

            await asyncio.to_thread(samples.write, self._run_folder, one, self._round.samples)
        await asyncio.to_thread(shutil.rmtree, self._run_folder / _COPIES, ignore_errors=True)
        await asyncio.gather(*(_remove(host, path) for path, host in self._round.folders.items()))

    async def _make(self, host: Host) -> str:
        found = await host.run(("sh", "-c", _PLACE), check=False)
        parent = found.stdout.strip()
        if found.status != 0 or not parent.startswith("/"):
            raise NotReadyError(
                "there is no folder for what its workloads leave: neither /dev/shm nor /run nor /tmp can be written to",
                place=host.name,
                next_step="make /tmp writable there, or set TMPDIR",
            )
        path = f"{parent}/nicbench-left-{self._changes.run_id}-{safe_name(host.name)}"

        async def make() -> None:
            await host.run(("mkdir", "-m", "700", "--", path))

        await self._changes.make(host, RemovePath(path=path), make)
        return path


def _samples_path(round_id: str) -> str:
    return f"{FRAMES}/{round_id}.parquet"


async def _fetch(host: Host, path: str, copy: Path) -> Path:
    await asyncio.to_thread(copy.parent.mkdir, exist_ok=True)
    await host.get(path, copy)
    return copy


async def _remove(host: Host, path: str) -> None:
    """What the undo would do; where it fails, the undo does it."""
    with contextlib.suppress(NicbenchError):
        await host.run(("rm", "-rf", "--", path), check=False)
