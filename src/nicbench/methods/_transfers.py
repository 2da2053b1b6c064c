"""Transfers of a file: the medium at either end, and their table."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from nicbench.core.endpoint import EndpointFacts
from nicbench.core.table import Column, Grid, ImportColumn, ImportTable, ResultTable
from nicbench.core.units import format_bits_per_s, format_bytes
from nicbench.methods._round_figures import CLIENT_OWN_CPU, SERVER_OWN_CPU

MEMORY: Final = "memory"
_TELLING_EXCESS: Final = 1.005
_FOLDER: Final = re.compile(r"/[A-Za-z0-9._/+-]{1,200}")
_ACCEPTED: Final = "`memory`, a folder (`/mnt/data`), or a folder for each host (`{server: /mnt/data}`)"


def _read(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return {str(host): _folder(folder) for host, folder in value.items()}
    return value if value == MEMORY else _folder(value)


def _folder(value: Any) -> str:
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or ".." in value.split("/"):
        given = f"`{value}`" if isinstance(value, str | int | float) else "this"
        raise _refusal(f"{given} is no folder: a path from the root, without `..` and blanks")
    return value


def _refusal(why: str) -> PydanticCustomError:
    return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": _ACCEPTED})


def bucket_note(client: EndpointFacts, transfer_bytes: int) -> str | None:
    """Returns what the token bucket of the link does to a short transfer; None where that is less than half a percent.

    The bucket is full at first and lets its bytes pass at once; only the others wait for tokens.
    """
    rate, bucket = client.link_bits_per_s, client.bucket_bytes
    if rate is None or bucket is None or transfer_bytes <= 0:
        return None
    size = f"of a transfer of {format_bytes(transfer_bytes)} the first {bucket} bytes pass at once"
    if transfer_bytes <= bucket:
        return f"{size}: its rate says nothing of the link"
    highest = rate * transfer_bytes / (transfer_bytes - bucket)
    if highest < _TELLING_EXCESS * rate:
        return None
    return f"{size}, so that it may show up to {format_bits_per_s(highest)} on a link of {format_bits_per_s(rate)}"


Medium = Annotated[str | dict[str, str], BeforeValidator(_read)]
"""The medium: ``memory``, a folder for every host, or ``{host: folder}``; hosts that are not named use memory."""


def folder_of(medium: str | dict[str, str], end: EndpointFacts) -> str | None:
    """Returns the folder on the host of an endpoint; None where the medium is memory there."""
    if isinstance(medium, dict):
        return medium.get(end.host)
    return None if medium == MEMORY else medium


def words_of(medium: str | dict[str, str], end: EndpointFacts) -> str:
    """Describes the medium for tables: "memory", "file in /mnt/data"."""
    folder = folder_of(medium, end)
    return MEMORY if folder is None else f"file in {folder}"


def example_of(medium: str | dict[str, str]) -> str | None:
    """Returns any path of the medium, to check whether a tool supports files at all; None for memory."""
    return None if medium == MEMORY else "/folder/file"


_TRANSFER: Final = Column(value="transfer", head="Transfer", form="text")
_WRITE: Final = Column(value="write_bytes", head="Write", unit="bytes", form="text")
_PLACE: Final = Column(value="place", head="Port", form="text")
_RATE: Final = Column(
    value="throughput_bits_per_s",
    head="Throughput, mean",
    unit="Mb/s",
    form="megabits",
    is_main=True,
    better="higher",
    comparative="faster",
)

TABLE: Final = ResultTable(
    title="Transfers",
    caption=(
        "Payload of transfers of a fixed number of bytes, by what the receiver counted: the arithmetic mean of the "
        "repetitions and their standard deviation, each client by itself. MB are 10⁶ bytes, MiB 2²⁰."
    ),
    columns=(
        *(_PLACE, _TRANSFER, _WRITE, _RATE),
        Column(value="throughput_deviation_bits_per_s", head="Std. deviation", unit="Mb/s", form="megabits"),
        Column(value="throughput_minimum_bits_per_s", head="least", unit="Mb/s", form="megabits"),
        Column(value="throughput_maximum_bits_per_s", head="most", unit="Mb/s", form="megabits"),
        Column(value="repetitions", head="Repetitions", form="whole"),
        Column(value="source", head="Source", form="text"),
        Column(value="sink", head="Sink", form="text"),
        SERVER_OWN_CPU,
        Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
        CLIENT_OWN_CPU,
        Column(value="client_cpu_mean_percent", head="Client's CPU, mean", unit="%", form="number"),
        Column(value="retransmissions", head="Retransmissions", form="whole"),
        Column(value="limited_by", head="Limit", form="text"),
    ),
    sentences=("moves {throughput_bits_per_s} in transfers of {transfer} by {write_bytes} writes ({place})",),
    notes=(("limit", "Limit"), ("token_bucket", "Token bucket")),
    grid=Grid(rows=_TRANSFER, across=(_WRITE,), cell=_RATE, each=_PLACE),
)

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(
            value="throughput_bits_per_s", name="throughput", quantity="payload_rate", also=("mean", "mean throughput")
        ),
        ImportColumn(
            value="throughput_deviation_bits_per_s",
            name="standard deviation",
            quantity="payload_rate",
            also=("std deviation", "deviation"),
        ),
        ImportColumn(value="server_cpu_mean_percent", name="cpu", quantity="percent", also=("server cpu",)),
        ImportColumn(value="workload", name="tool", quantity="text", also=("workload",), tells_apart=True),
        ImportColumn(value="port", name="port", quantity="text", tells_apart=True),
        ImportColumn(value="client", name="client", quantity="text", tells_apart=True),
        ImportColumn(value="duplex", name="duplex", quantity="text", tells_apart=True),
        ImportColumn(value="transfer_bytes", name="transfer size", quantity="count", also=("size",), tells_apart=True),
        ImportColumn(value="write_bytes", name="write size", quantity="count", also=("write",), tells_apart=True),
        ImportColumn(value="source", name="source", quantity="text", tells_apart=True),
        ImportColumn(value="sink", name="sink", quantity="text", tells_apart=True),
        ImportColumn(value="repetitions", name="repetitions", quantity="count"),
    ),
    any_of=("throughput_bits_per_s",),
    caption="Throughput of payload in transfers of a fixed number of bytes.",
)
