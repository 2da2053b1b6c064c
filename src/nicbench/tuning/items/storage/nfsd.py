"""The kernel's NFS server: how many threads it has, and which versions it speaks.

Source: rpc.nfsd(8), nfsd(7): /proc/fs/nfsd/threads and versions. Versions change only while it has no threads, and with
its last thread a server closes its listeners: threads alone bring back those of IPv4 and no others (fs/nfsd/nfssvc.c,
nfsd_init_socks), not IPv6 and RDMA. So versions are only checked.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_FOLDER = "/proc/fs/nfsd"
_THREADS = "threads"
Version = Annotated[str, StringConstraints(pattern=r"^[2-4](\.[0-2])?$")]


class NfsdOptions(Frozen):
    """``nfsd: {threads: 64, versions: {"3": false, "4.2": true}}``."""

    threads: int | None = Field(default=None, ge=1, le=10_000)
    versions: dict[Version, bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_something(self) -> NfsdOptions:
        if self.threads is None and not self.versions:
            raise ValueError("give threads or versions")
        return self


class Nfsd(Item):
    """``threads``, and ``version N`` for each that this server knows."""

    kind = "nfsd"
    Options = NfsdOptions
    options: NfsdOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "threads"

    async def read(self, place: Place) -> Values:
        threads = await place.host.read_file(f"{_FOLDER}/{_THREADS}")
        if threads is None or not threads.strip().isdigit() or int(threads) == 0:
            raise CannotSetError("no NFS server of the kernel runs here")
        versions = await place.host.read_file(f"{_FOLDER}/versions")
        return {_THREADS: int(threads), **versions_of(versions or "")}

    def target_values(self, now: Values) -> Values:
        wanted: Values = {} if self.options.threads is None else {_THREADS: self.options.threads}
        for version, on in self.options.versions.items():
            key = f"version {version}"
            if key not in now:
                raise CannotSetError(f"this NFS server knows no version {version}")
            if now[key] is not on:
                raise CannotSetError(
                    f"version {version} is {'off' if on else 'on'}; to change it the server must be stopped, and its "
                    f"listeners could not be put back: set vers{version} under [nfsd] of /etc/nfs.conf and restart it"
                )
            wanted[key] = on
        return wanted

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(f"{_FOLDER}/{_THREADS}", str(values[_THREADS]))


def versions_of(text: str) -> Values:
    """Of ``-2 +3 +4 +4.1 -4.2``: which are spoken."""
    return {f"version {word[1:]}": word[0] == "+" for word in text.split() if word[0] in "+-" and len(word) > 1}
