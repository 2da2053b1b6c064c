"""The table of transfers, and what is taken of those that somebody else measured."""

from __future__ import annotations

from typing import Final

from nicbench.model.import_table import ImportColumn, ImportTable
from nicbench.model.table import Column, Grid, ResultTable

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
        "repetitions and their standard deviation, each client by itself. MB are 10^6 bytes, MiB 2^20."
    ),
    columns=(
        *(_PLACE, _TRANSFER, _WRITE, _RATE),
        Column(value="throughput_deviation_bits_per_s", head="Std. deviation", unit="Mb/s", form="megabits"),
        Column(value="throughput_minimum_bits_per_s", head="least", unit="Mb/s", form="megabits"),
        Column(value="throughput_maximum_bits_per_s", head="most", unit="Mb/s", form="megabits"),
        Column(value="repetitions", head="Repetitions", form="whole"),
        Column(value="source", head="Source", form="text"),
        Column(value="sink", head="Sink", form="text"),
        Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
        Column(value="client_cpu_mean_percent", head="Client's CPU, mean", unit="%", form="number"),
        Column(value="retransmissions", head="Retransmissions", form="whole"),
        Column(value="limited_by", head="Limit", form="text"),
    ),
    sentences=("moves {throughput_bits_per_s} in transfers of {transfer} by {write_bytes} writes ({place})",),
    notes=(("limit", "Limit"),),
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
