"""AggregateResults.csv of IxNetwork's QuickTests RFC 2544 (Keysight, Ixia): a row for each trial and frame size.

The headings, with their units, are those that DPDK's test suite and OPNFV's vswitchperf read: both are public programs
that run these tests. ``Agg`` before a name (all ports) is dropped, as iteration.csv does not have it. Of several trials
one must be chosen: --where Trial=1.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from nicbench.importing.cells import Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats._shared import Names, rename_columns
from nicbench.importing.formats.base import Format

_LOADED: Final = {
    "Framesize": "frame size",
    "Frame Size": "frame size",
    "Tx Rate (% Line Rate)": "load [% of line rate]",
    "Frame Loss (%)": "loss [%]",
}
_NAMES: Final[Names] = MappingProxyType(
    {
        "throughput": {
            "Framesize": "frame size",
            "Frame Size": "frame size",
            "Rx Throughput (fps)": "frame rate [fps]",
            "Rx Throughput (% Line Rate)": "% of line rate",
            "Frame Loss (%)": "loss [%]",
        },
        "latency": {
            **_LOADED,
            "Min Latency (ns)": "minimum latency [ns]",
            "Avg Latency (ns)": "average latency [ns]",
            "Max Latency (ns)": "maximum latency [ns]",
        },
        "frame-loss": {
            **_LOADED,
            "Tx Count (frames)": "offered frames",
            "Rx Count (frames)": "returned frames",
            "Frame Loss (frames)": "lost frames",
        },
    }
)
_PDR_NAMES: Final = MappingProxyType(
    {"Rx Throughput (fps)": "PDR [fps]", "Rx Throughput (% Line Rate)": "PDR % of line rate"}
)


class IxNetwork(Format):
    """Reads IxNetwork's table; where a loss was allowed (``--pdr-loss``), the rates of a throughput test are a PDR."""

    kind: ClassVar[str] = "ixnetwork"
    about: ClassVar[str] = "AggregateResults.csv of an RFC 2544 QuickTest (Keysight, Ixia)"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        names = {kind: dict(of_kind) for kind, of_kind in _NAMES.items()}
        if options.loss_ratio:
            names["throughput"] |= _PDR_NAMES
        return rename_columns(sheet, path, names, method, "IxNetwork", lambda head: head.removeprefix("Agg "))
