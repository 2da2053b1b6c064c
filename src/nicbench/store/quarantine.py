"""Quarantine: a run folder that is not as the run left it stays where it is, and is not read as if it were good."""

from __future__ import annotations

from typing import Final

from nicbench.errors import HostError
from nicbench.store import manifest
from nicbench.store.folder import RunFolder

FROM_A_COPY: Final = "put the files back from a copy of the folder"


def refuse_damaged(folder: RunFolder, next_step: str = FROM_A_COPY) -> None:
    """HostError where a file that would be shown is not the one that the run left."""
    _refuse(folder, folder.damage(), next_step)


def refuse_damaged_files(folder: RunFolder, *names: str) -> None:
    """The same of these files, by their paths in the run folder: those that are for other programs may be large."""
    found = [each for each in manifest.departures(folder.path, names) if each.name in names]
    _refuse(folder, manifest.told(found), FROM_A_COPY)


def _refuse(folder: RunFolder, damage: tuple[str, ...], next_step: str) -> None:
    if damage:
        raise HostError(
            f"the run folder is damaged and in quarantine: {'; '.join(damage)}",
            place=str(folder.path),
            next_step=next_step,
        )
