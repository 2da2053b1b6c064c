"""Where instances work: each in a directory, on a client, and where asked on CPUs and memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nicbench.methods.base import RoundContext
from nicbench.model.base import Frozen
from nicbench.model.cpu_list import parse_cpu_list
from nicbench.model.round import Placement
from nicbench.model.traffic import Name

INSTANCE: Final = "{instance}"
"""In a directory: the number of the instance."""


def _directory(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"a directory is given with its whole path, as in /mnt/d{INSTANCE}, not {path!r}")
    rest = path.replace(INSTANCE, "")
    if "{" in rest or "}" in rest or "\0" in rest or "\n" in rest:
        raise ValueError(f"{path!r}: the only name in braces that a directory may have is {INSTANCE}")
    return path.rstrip("/") or "/"


def _cpus(value: Any) -> Any:
    """``0-3,8``, or a single number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    try:
        return parse_cpu_list(str(value)) or ()
    except ValueError as error:
        raise ValueError(f"{value!r} is no list of CPUs; write 0-3,8") from error


Directory = Annotated[str, AfterValidator(_directory)]
Cpus = Annotated[tuple[int, ...], BeforeValidator(_cpus), Field(min_length=1)]


class Place(Frozen):
    """``client`` is the name of a client's port; None: clients in turn. CPUs are those of its host."""

    directory: Directory
    client: Name | None = None
    cpus: Cpus | None = None
    memory_node: int | None = Field(default=None, ge=0, le=1023)

    @model_validator(mode="before")
    @classmethod
    def _directory_alone(cls, value: Any) -> Any:
        return {"directory": value} if isinstance(value, str) else value

    @property
    def placement(self) -> Placement:
        return Placement(cpus=self.cpus, memory_node=self.memory_node)


def _one_or_several(value: Any) -> Any:
    if value is None:
        return None
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    for each in several:
        if not isinstance(each, str | dict | Place):
            raise ValueError(
                f"{each!r} is no directory; write /mnt/d{INSTANCE}, or a list with a directory "
                "(or {directory: /mnt/d1, client: c0}) for each instance"
            )
    return several


Places = Annotated[tuple[Place, ...], BeforeValidator(_one_or_several), Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Seat:
    """One instance: its number, from 1, the client's port, its directory there and where it runs."""

    instance: int
    client: str
    directory: str
    placement: Placement

    @property
    def label(self) -> str:
        return f"instance {self.instance}"


def seats(places: Sequence[Place] | None, most: int, context: RoundContext) -> tuple[Seat, ...]:
    """Of the instances 1 to ``most``; fewer where a list of places ends before.

    Without places: the shares of the DUT. One place alone is every instance's; several are one's each.
    """
    if places is None:
        return tuple(Seat(mount.share, mount.endpoint, mount.directory, Placement()) for mount in context.mounts[:most])
    of_each = [places[0]] * most if len(places) == 1 else list(places[:most])
    return tuple(_seats(of_each, [client.name for client in context.clients]))


def _seats(of_each: Sequence[Place], clients: Sequence[str]) -> Iterator[Seat]:
    for number, place in enumerate(of_each, 1):
        client = place.client or clients[(number - 1) % len(clients)]
        yield Seat(number, client, place.directory.replace(INSTANCE, str(number)), place.placement)
