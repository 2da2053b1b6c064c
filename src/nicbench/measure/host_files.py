"""Files and folders of ours that rounds need on hosts, and files that clients leave there."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.round import MOUNTS, OwnFolder, Round
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.store.files import storage_error
from nicbench.store.folder import FRAMES
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath
from nicbench.workloads.base import Keeper, LeftFile, StoredFile
from nicbench.workloads.processes import safe_name

if TYPE_CHECKING:
    from nicbench.store.samples import Samples


# Files and folders of ours that rounds need on hosts: made where there is room, and gone with the run.
#
# Files to be read or written (``RoundFiles``), and folders in directories that are measured (``OwnFolders``).


_SLOWEST_BYTES_PER_S: Final = 10e6
"""Of a drive that is filled."""
_SPARE_OF_FILE_RATIO: Final = 0.05
"""Of the file, left free: a file system keeps books as well."""
_THERE: Final = 3
# $1 is the folder, $2 the file. Free bytes are those that this user may have; `df` prints a heading first.
_FREE_FOR_FILE: Final = (
    f'test ! -e "$2" || exit {_THERE}; test -d "$1" && test -w "$1" '
    '&& df --output=avail --block-size=1 -- "$1" | tail -n 1'
)
# -C: never over a file that is there already.
_FILL: Final = 'set -C; head -c "$2" /dev/urandom > "$1"'


_ANSWER_S: Final = 30.0
"""A server that is gone lets whoever asks for a directory of it wait."""
_REMOVAL_S: Final = 1800.0
_SPARE_RATIO: Final = 0.02
"""Left free: a file system keeps books as well."""
_AGAIN: Final = "mount it again; `nicbench resume` then goes on with this round"
_AGAIN_OURS: Final = (
    "the server of this share, or its mount, died: the kernel's messages (dmesg) of both hosts may say why; "
    "`nicbench resume` makes the shares anew and goes on with this round"
)
_NO_FOLDER: Final = 3
# $1 is the directory. Free bytes are those that this user may have; `df` prints a heading first.
_FREE_BYTES: Final = (
    f'test -d "$1" && test -w "$1" || exit {_NO_FOLDER}; '
    'df --output=source,target,avail --block-size=1 -- "$1" | tail -n 1'
)


class RoundFiles:
    """Makes files whose removal is written down before they are there."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._promised: set[tuple[str, str]] = set()
        """Host and path of each whose removal is written down."""

    async def make(self, host: Host, folder: str, name: str, size_bytes: int, *, filled: bool) -> str:
        """``folder/nicbench-RUN-name``. NotReadyError where the folder cannot be used, or has no room for the file."""
        path = f"{folder.rstrip('/')}/nicbench-{self._changes.run_id}-{name}"
        free = await host.run(("sh", "-c", _FREE_FOR_FILE, "sh", folder, path), check=False)
        if free.status == _THERE:
            step = "remove it, if nobody needs it, or name another folder"
            raise NotReadyError(f"{path} is there already and is left alone", place=host.name, next_step=step)
        if free.status != 0 or not free.stdout.strip().isdigit():
            raise NotReadyError(
                f"there is no folder {folder} that can be written to",
                place=host.name,
                next_step=f"make it there (mkdir -p {folder}), or name another folder",
            )
        needed, there = round(size_bytes * (1 + _SPARE_OF_FILE_RATIO)), int(free.stdout.strip())
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


class OwnFolders:
    """Makes folders whose removal is written down before they are there."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._there: set[tuple[str, str]] = set()
        """Host and path of each, and of the folder of ours that it is in."""

    async def make(self, hosts: Mapping[str, Host], folders: Sequence[OwnFolder]) -> None:
        """Those that are not there yet; ``hosts`` are by endpoint.

        NotReadyError where a directory cannot be used, or has no room for all that is to be in it.
        """
        missing = [each for each in folders if (hosts[each.endpoint].name, each.path) not in self._there]
        for each in missing:
            await _free_space(
                hosts[each.endpoint], each.parent
            )  # one that does not answer is told before it is waited for
            await _remove(hosts[each.endpoint], each.path)
        await self._require_room(hosts, missing)
        for each in missing:
            await self._make(hosts[each.endpoint], each)

    async def require(self, hosts: Mapping[str, Host], folders: Sequence[OwnFolder], failure: str) -> None:
        """HostError where one is gone, or does not answer, with the ``failure`` of the round that made us look."""
        for each in folders:
            host = hosts[each.endpoint]
            what = await _find_fault(host, each.path)
            if what is not None:
                raise HostError(
                    f"the directory {each.path} {what}; the round failed with: {failure}",
                    place=host.name,
                    next_step=_AGAIN_OURS if each.path.startswith(MOUNTS) else _AGAIN,
                )

    async def _require_room(self, hosts: Mapping[str, Host], folders: Sequence[OwnFolder]) -> None:
        needed: dict[tuple[str, str], int] = {}
        there = {}
        named = {}
        for each in folders:
            host = hosts[each.endpoint]
            source, free = await _free_space(host, each.parent)
            key = (outermost(host).name, source)
            there[key], named[key] = free, (host.name, each.parent)
            needed[key] = needed.get(key, 0) + each.needed_bytes
        for key, wanted in needed.items():
            host_name, parent = named[key]
            if there[key] < wanted * (1 + _SPARE_RATIO):
                raise NotReadyError(
                    f"{parent} has {there[key]} bytes free, and files of {wanted} bytes are to be there",
                    place=host_name,
                    next_step="make room, use smaller or fewer frames, fewer instances, or a shorter duration",
                )

    async def _make(self, host: Host, folder: OwnFolder) -> None:
        own = f"{folder.parent.rstrip('/')}/{folder.name.partition('/')[0]}"
        if (host.name, own) not in self._there:

            async def apply() -> None:
                # Another client may see the same directory: its name is this run's, and so it is ours whoever made it.
                await host.run(("mkdir", "-p", "--", own), timeout_s=_ANSWER_S)

            self._there.add((host.name, own))
            await self._changes.make(host, RemovePath(path=own), apply)
        await host.run(("mkdir", "-p", "--", folder.path), timeout_s=_ANSWER_S)
        self._there.add((host.name, folder.path))


async def _remove(host: Host, path: str) -> None:
    """What an earlier part of this run left there: the directory was away when it was to be removed."""
    try:
        await host.run(("rm", "-rf", "--one-file-system", "--", path), timeout_s=_REMOVAL_S)
    except HostError as error:
        raise NotReadyError(
            f"what this run left in {path} cannot be removed: {error.message}",
            place=host.name,
            next_step="see whether the directory answers (ls), and remove that folder",
        ) from error


async def _find_fault(host: Host, directory: str) -> str | None:
    """What is wrong with it, None where nothing is."""
    try:
        done = await host.run(("test", "-d", directory), check=False, timeout_s=_ANSWER_S)
    except HostError:
        return f"does not answer within {_ANSWER_S:g} s: what serves it may be gone"
    return None if done.status == 0 else "is gone"


async def _free_space(host: Host, directory: str) -> tuple[str, int]:
    """The file system of a directory, and its free bytes."""
    try:
        done = await host.run(("sh", "-c", _FREE_BYTES, "sh", directory), check=False, timeout_s=_ANSWER_S)
    except HostError as error:
        raise NotReadyError(
            f"the directory {directory} does not answer within {_ANSWER_S:g} s: what serves it may be gone",
            place=host.name,
            next_step="see there whether its server is up (findmnt, ls), and mount it again",
        ) from error
    parts = done.stdout.split()
    if done.status != 0 or len(parts) < 3 or not parts[-1].isdigit():
        raise NotReadyError(
            f"there is no directory {directory} that can be written to",
            place=host.name,
            next_step=f"mount or make it there (mkdir -p {directory}), or name another one",
        )
    return " ".join(parts[:-1]), int(parts[-1])


async def file_system_at(host: Host, directory: str) -> str | None:
    """Its type and source, "nfs4 server:/stor/d1"; None where the mount is not known."""
    command = ("df", "--output=fstype,source", "--", directory)
    try:
        done = await host.run(command, check=False, timeout_s=_ANSWER_S)
    except HostError:
        return None
    lines = done.stdout.splitlines()
    return " ".join(lines[1].split()) if done.status == 0 and len(lines) > 1 else None


# Files that clients leave on their hosts: a folder of ours for each of them, fetched, kept, and gone with the run.


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
        from nicbench.store import (
            samples as frame_samples,  # here: most rounds leave nothing, and loading it takes long
        )

        copy = self._run_folder / _COPIES / f"{self._round.id}-{job}-{safe_name(left.name)}"
        try:
            here = Path(path) if host.shares_files else await _fetch(host, path, copy)
            samples = await asyncio.to_thread(frame_samples.check_samples, here)
        except NicbenchError as error:
            step = f"; next: {error.next_step}" if error.next_step else ""
            return StoredFile(notes=(f"its {left.what} are lost: {path} on {host.name}: {error.message}{step}",))
        except OSError as error:  # of the copy
            raise storage_error(error, copy) from error
        self._round.samples[job] = samples
        notes = (f"the last of its {left.what} was cut short, and left out",) if samples.cut_bytes else ()
        return StoredFile(files=(_samples_path(self._round.id),), notes=notes)

    async def keep(self, one: Round) -> None:
        """Writes what ``take`` took into the run folder, before the round is journaled, and removes what was left."""
        if self._round.samples:
            from nicbench.store import samples as frame_samples  # as above

            await asyncio.to_thread(frame_samples.write, self._run_folder, one, self._round.samples)
        await asyncio.to_thread(shutil.rmtree, self._run_folder / _COPIES, ignore_errors=True)
        await asyncio.gather(*(_remove_of_client(host, path) for path, host in self._round.folders.items()))

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


async def _remove_of_client(host: Host, path: str) -> None:
    """What the undo would do; where it fails, the undo does it."""
    with contextlib.suppress(NicbenchError):
        await host.run(("rm", "-rf", "--", path), check=False)
