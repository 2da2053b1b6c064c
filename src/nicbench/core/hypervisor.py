"""What a hypervisor is set to, read from files that its administrator saved: plain tables, as a plan keeps them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.base import Frozen

FileName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class HypervisorFiles(Frozen):
    """``{libvirt: guest.xml}``, or ``{esxi: {version: version.txt}}``: files, by what they say."""

    libvirt: FileName | None = None
    """A file with the output of `virsh dumpxml GUEST`."""
    esxi: dict[Annotated[str, StringConstraints(min_length=1, max_length=64)], FileName] = Field(
        default_factory=dict, max_length=64
    )
    """Files with outputs of `esxcli`, by what they say."""

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        if (self.libvirt is None) == (not self.esxi):
            raise ValueError("name either a file of `libvirt` or the files of `esxi`: a guest has one hypervisor")
        return self

    @property
    def named(self) -> dict[str, str]:
        """Each file by what it says."""
        return {"domain": self.libvirt} if self.libvirt is not None else dict(self.esxi)


class HypervisorTable(Frozen):
    """Facts by their labels, where there are no ``heads``; else things side by side."""

    title: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Hypervisor(Frozen):
    """The tables of one guest's hypervisor, and the names of the files that they were read from."""

    kind: str
    files: tuple[str, ...]
    tables: tuple[HypervisorTable, ...]
