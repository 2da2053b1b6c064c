"""Where the frames of a study were: each instance's directory and the file system that its client had there.

A share that is not mounted is the client's own disk: then nothing went over the links, and no server fed anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.core.result import Result
from nicbench.report.editors.study import Study
from nicbench.report.numbers import UNKNOWN

Kind = Literal["local", "network", "FUSE"]

_OVER_NETWORK: Final = frozenset(
    {
        *("9p", "acfs", "afs", "auristorfs", "autofs", "beegfs", "ceph", "cifs", "coda", "fhgfs", "gfs2", "glusterfs"),
        *("gpfs", "ibrix", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3"),
        *("smbfs", "vboxsf", "virtiofs", "vmhgfs", "vxfs", "wekafs"),
    }
)


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """Of one instance; ``file_system`` is its type and source as the client's kernel names them."""

    configuration: str
    instance: int
    client: str
    directory: str
    file_system: str
    kind: str


def directory_rows(study: Study) -> tuple[DirectoryRow, ...]:
    """Each directory once, by configuration and instance; nothing where no file system is known."""
    found = {
        DirectoryRow(
            configuration=configuration,
            instance=result.parameters["instance"],
            client=str(result.parameters.get("client") or UNKNOWN),
            directory=str(result.parameters.get("directory") or UNKNOWN),
            file_system=where or UNKNOWN,
            kind=UNKNOWN if where is None else kind_of(where),
        )
        for configuration, result in _instances(study)
        for where in (_file_system(result),)
    }
    if all(row.kind == UNKNOWN for row in found):
        return ()
    places = {name: place for place, name in enumerate(study.configurations)}
    return tuple(sorted(found, key=lambda row: (places[row.configuration], row.instance, row.directory, row.kind)))


def local_types(study: Study) -> tuple[str, ...]:
    """The types of the file systems where every instance's is known, and is a local one; else nothing."""
    found = [_file_system(result) for _, result in _instances(study)]
    known = [where for where in found if where is not None and kind_of(where) == "local"]
    return tuple(dict.fromkeys(where.partition(" ")[0] for where in known)) if len(known) == len(found) else ()


def kind_of(file_system: str) -> Kind:
    """By its type and source: a colon or two slashes before a host are how network file systems are named (GNU df)."""
    kind, _, source = file_system.partition(" ")
    if kind.startswith("fuse"):
        return "FUSE"
    return "network" if kind in _OVER_NETWORK or ":" in source or source.startswith("//") else "local"


def _instances(study: Study) -> Iterator[tuple[str, Result]]:
    """With their configurations; an instance that has no result is in no directory that anybody knows."""
    for way in study.ways:
        for (configuration, _), tried in way.at.items():
            for ran in tried.runs:
                yield from ((configuration, result) for result in ran.instances if result is not None)


def _file_system(result: Result) -> str | None:
    where = result.values.get("file_system")
    return where if isinstance(where, str) and where else None
