"""The tables of an agreement: the answer for each pair of tools, and what each tool says."""

from __future__ import annotations

from typing import Final

from nicbench.model.table import Column, Grid, ResultTable

_PORT: Final = Column(value="port", head="Port", form="text")
_TOOL: Final = Column(value="workload", head="Tool", form="text")
_RATE: Final = Column(
    value="throughput_bits_per_s",
    head="Throughput, mean",
    unit="Mb/s",
    form="megabits",
    is_main=True,
    better="higher",
    comparative="faster",
)

TABLES: Final = (
    ResultTable(
        part="agreement",
        title="Agreement of tools",
        caption=(
            "The ratio of what two tools say of the same work: the second over the first, the geometric mean over "
            "repetitions in which each had its turn, in an order drawn with the seed; its interval by Student's t of "
            "the logarithms. They agree where the whole interval lies within the bound, and do not where none of it "
            "does."
        ),
        columns=(
            _PORT,
            Column(value="tools", head="Tools", form="text"),
            Column(value="ratio", head="Ratio", form="trimmed", is_main=True),
            Column(value="ratio_lower", head="from", form="trimmed"),
            Column(value="ratio_upper", head="to", form="trimmed"),
            Column(value="confidence_percent", head="Confidence", unit="%", form="trimmed"),
            Column(value="within_percent", head="Bound", unit="%", form="trimmed"),
            Column(value="pairs", head="Repetitions", form="whole"),
            Column(value="answer", head="The two", form="text"),
        ),
        sentences=("is measured by {tools}, and the two {answer} ({port})",),
    ),
    ResultTable(
        part="tools",
        title="Throughput by each tool",
        caption="Payload over each port with all of its clients, by what the receivers counted, mean and deviation.",
        columns=(
            *(_PORT, _TOOL, _RATE),
            Column(value="throughput_deviation_bits_per_s", head="Std. deviation", unit="Mb/s", form="megabits"),
            Column(value="throughput_minimum_bits_per_s", head="least", unit="Mb/s", form="megabits"),
            Column(value="throughput_maximum_bits_per_s", head="most", unit="Mb/s", form="megabits"),
            Column(value="repetitions", head="Repetitions", form="whole"),
        ),
        grid=Grid(rows=_PORT, across=(_TOOL,), cell=_RATE),
    ),
)
