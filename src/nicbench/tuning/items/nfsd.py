"""The kernel's NFS server: how many threads it has, and which versions it speaks.

Source: rpc.nfsd(8), nfsd(7): /proc/fs/nfsd/threads and versions. Versions change only while it has no threads: it is
stopped for that moment, and clients wait.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from nicbench.model.base import Frozen
from nicbench.model.tuning import Values
from nicbench.tuning.items.base import CannotSetError, Item, Phase, Place

_FOLDER = "/proc/fs/nfsd"
_THREADS = "threads"
Version = Annotated[str, StringConstraints(pattern=r"^[2-4](\.[0-2])?$")]


class NfsdOptions(Frozen):
    """``nfsd: {threads: 64, versions: {"3": false, "4.2": true}}``."""

    threads: int | None = Field(default=None, ge=1, le=10_000)
    versions: dict[Version, bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _something(self) -> NfsdOptions:
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

    def wanted(self, now: Values) -> Values:
        wanted: Values = {} if self.options.threads is None else {_THREADS: self.options.threads}
        for version, on in self.options.versions.items():
            if f"version {version}" not in now:
                raise CannotSetError(f"this NFS server knows no version {version}")
            wanted[f"version {version}"] = on
        return wanted

    async def write(self, place: Place, values: Values) -> None:
        words = [f"{'+' if on else '-'}{key.removeprefix('version ')}" for key, on in values.items() if key != _THREADS]
        threads = values.get(_THREADS)
        if words:
            now = (await place.host.read_file(f"{_FOLDER}/{_THREADS}") or "").strip()
            threads = threads if threads is not None else now
            await place.host.write_file(f"{_FOLDER}/{_THREADS}", "0")
            try:
                await place.host.write_file(f"{_FOLDER}/versions", " ".join(words))
            finally:
                await place.host.write_file(f"{_FOLDER}/{_THREADS}", str(threads))
        elif threads is not None:
            await place.host.write_file(f"{_FOLDER}/{_THREADS}", str(threads))


def versions_of(text: str) -> Values:
    """Of ``-2 +3 +4 +4.1 -4.2``: which are spoken."""
    return {f"version {word[1:]}": word[0] == "+" for word in text.split() if word[0] in "+-" and len(word) > 1}
