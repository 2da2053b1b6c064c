"""The tables of requests: transactions and latency, and the long tail in bins."""

from __future__ import annotations

from typing import Final

from nicbench.model.table import Column, Grid, Plot, ResultTable

_PORT: Final = Column(value="port", head="Port", form="text")
_TRANSPORT: Final = Column(value="transport", head="Transport", form="text")
_LOAD: Final = Column(value="load", head="Load", form="text")
_MESSAGE: Final = Column(value="message", head="Message", form="text")


def _latency(value: str, head: str, *, is_main: bool = False) -> Column:
    return Column(
        value=f"latency_{value}_ns", head=head, unit="us", form="microseconds", is_main=is_main, better="lower"
    )


_MEDIAN: Final = _latency("p50", "Latency, median", is_main=True)
_HIGH: Final = (_latency("p99", "p99"), _latency("p99_9", "p99.9"), _latency("p99_99", "p99.99"))

TABLES: Final = (
    ResultTable(
        part="requests",
        title="Requests and answers",
        caption=(
            "Transactions a second of one connection, a request at a time, and the latency of a request. What the "
            "latency is of (the round trip, half of it, or one way) is the tool's, and stands in its column."
        ),
        columns=(
            *(_PORT, _TRANSPORT, _LOAD, _MESSAGE),
            Column(
                value="transactions_per_s",
                head="Rate",
                unit="transactions/s",
                is_main=True,
                better="higher",
                comparative="faster",
            ),
            _latency("minimum", "Latency, least"),
            _latency("mean", "mean"),
            _MEDIAN,
            _latency("p90", "p90"),
            *_HIGH,
            _latency("maximum", "greatest"),
            Column(value="basis", head="Latency of", form="text"),
            Column(value="requests", head="Requests timed", form="whole"),
            Column(value="load_bits_per_s", head="Load beside", unit="Mb/s", form="megabits"),
            Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
        ),
        sentences=(
            "makes {transactions_per_s} of {message} over {transport}, half within {latency_p50_ns} ({basis}; {load})",
        ),
        plots=(
            Plot(
                x=_MESSAGE,
                y=(
                    Column(value=_MEDIAN.value, head="Latency, median", unit="us", form="microseconds"),
                    *(column.model_copy(update={"head": f"Latency, {column.head}"}) for column in _HIGH[:2]),
                ),
                lines=(_TRANSPORT, _LOAD),
                each=_PORT,
                caption="Latency of requests over the message size.",
                logarithmic=True,
            ),
        ),
    ),
    ResultTable(
        part="tail",
        title="Long tail of requests",
        caption="How many of all requests took how long. A request that took exactly a bound is in the bin below it.",
        columns=(
            *(_PORT, _TRANSPORT, _LOAD, _MESSAGE),
            Column(value="bin", head="Latency", form="text"),
            Column(value="requests", head="Requests", form="whole", is_main=True),
            Column(value="share_percent", head="Share", unit="%", form="of_frames"),
        ),
        grid=Grid(
            rows=Column(value="bin", head="Latency", form="text"),
            across=(_TRANSPORT, _LOAD, _MESSAGE),
            cell=Column(value="requests", head="Requests", form="whole", is_main=True),
            each=_PORT,
        ),
    ),
)
