"""Columns that methods accept in imported results: sizes, loads, rates, counts, streams, and bursts."""

from __future__ import annotations

from typing import Any, Final

from nicbench.core.result import Spread, Value
from nicbench.core.table import ImportColumn, ImportStatistics, ImportTable
from nicbench.core.units import format_bytes, format_digits
from nicbench.methods.base import Values

SIZE: Final = ImportColumn(
    "frame_bytes",
    "frame size",
    "frame_size",
    also=("frame", "size", "framesize", "packet size", "frame length"),
    tells_apart=True,
    is_required=True,
)
LOAD: Final = ImportColumn("load_percent", "load", "load", also=("offered load",), tells_apart=True, is_required=True)
LOAD_RATE: Final = ImportColumn("load_frames_per_s", "load rate", "frame_rate", also=("offered rate", "tx rate"))
LINE_RATE: Final = ImportColumn("line_rate_frames_per_s", "line rate", "frame_rate", also=("theoretical rate",))
OFFERED: Final = ImportColumn(
    "offered_frames", "offered frames", "count", also=("sent frames", "tx frames", "frames sent")
)
RETURNED: Final = ImportColumn(
    "returned_frames",
    "returned frames",
    "count",
    also=("received frames", "rx frames", "frames received"),
)
LOST: Final = ImportColumn("lost_frames", "lost frames", "count", also=("frames lost",))
LOSS: Final = ImportColumn("loss_percent", "loss", "percent", also=("frame loss", "frame loss rate", "packet loss"))
RETURNED_SHARE: Final = ImportColumn(
    "returned_percent", "returned", "percent", also=("returned intact", "frames returned")
)

COUNTS: Final = (OFFERED, RETURNED, LOST)
COUNTS_RISE: Final = (("returned_frames", "offered_frames"), ("lost_frames", "offered_frames"))
COUNTED_SUMS: Final = (("offered_frames", "returned_frames", "lost_frames"),)
COUNTED_SHARES: Final = (
    ("loss_percent", "lost_frames", "offered_frames"),
    ("returned_percent", "returned_frames", "offered_frames"),
)


def interval_columns(column: ImportColumn) -> tuple[ImportColumn, ...]:
    """Returns the column and those of the two ends of its interval: "PDR", "PDR lower", "PDR upper"."""
    parts = []
    for part in ("lower", "upper"):
        names = tuple(f"{name} {part}" for name in (column.name, *column.also))
        parts.append(column.replace(bound=part, name=names[0], also=names[1:]))
    return (column.replace(bound="value"), *parts)


ALL_PORTS: Final = "all"
"""The word in place of a port's name in a row for all ports together."""

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn("throughput_bits_per_s", "throughput", "payload_rate"),
        ImportColumn("server_cpu_mean_percent", "cpu", "percent", also=("server cpu",)),
        ImportColumn("server_cpu_minimum_percent", "least cpu", "percent"),
        ImportColumn("server_cpu_maximum_percent", "most cpu", "percent"),
        ImportColumn("retransmissions", "retransmissions", "count"),
        ImportColumn("lost_datagrams_percent", "datagrams lost", "percent"),
        ImportColumn("workload", "tool", "text", also=("workload",), tells_apart=True),
        ImportColumn("mode", "mode", "text", tells_apart=True),
        ImportColumn("port", "port", "text", tells_apart=True),
        ImportColumn("client", "client", "text", tells_apart=True, may_be_empty=True),
        ImportColumn("duplex", "duplex", "text", tells_apart=True),
        ImportColumn("direction", "direction", "text", tells_apart=True),
        ImportColumn(
            "at_once",
            "at once",
            "text",
            also=("ports at once",),
            tells_apart=True,
            may_be_empty=True,
        ),
    ),
    any_of=("throughput_bits_per_s",),
    rising=(("server_cpu_minimum_percent", "server_cpu_mean_percent", "server_cpu_maximum_percent"),),
    # Ports measured alone do not add up to all at once: only rows that say what ran at once are held against them.
    statistics=(
        ImportStatistics(
            parts="ports",
            part="throughput_bits_per_s",
            total="throughput_bits_per_s",
            place="port",
            below=("client",),
            named=ALL_PORTS,
            if_said=("at_once",),
        ),
    ),
    caption="Payload in Mb/s / busy CPUs of the server in percent, of each port.",
)


def stream_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """Adds the part of an imported row: a port, a client at a port, or all ports together (``ALL_PORTS``).

    The mode is the link's speed and duplex, as in the published tables.
    """
    duplex = parameters.get("duplex")
    said = (parameters.get("link"), f"{duplex} duplex" if duplex else None, parameters.get("mode"))
    mode = ", ".join(text for text in said if text) or parameters.get("workload") or "link not named"
    together = parameters.get("port", "").lower() == ALL_PORTS
    part = "combined" if together else "clients" if "client" in parameters else "ports"
    port = f"port {parameters['port']}" if "port" in parameters else "port not named"
    at_once = parameters.get("at_once", "as the source had it")
    place = {} if together else {"port": port, "beside": at_once}
    told = {"part": part, "mode": mode, "at_once": at_once, **place}
    rate, cpu = values.get("throughput_bits_per_s"), values.get("server_cpu_mean_percent")
    both = throughput_and_cpu(rate, cpu) if isinstance(rate, float) else None
    kept = {name: value for name, value in parameters.items() if name != "port"}
    return {**kept, **told}, {**values, "throughput_and_cpu": both, "throughput_and_own_cpu": both}


def throughput_and_cpu(rate_bits_per_s: object, cpu_percent: object) -> str | None:
    """Formats throughput and CPU use as published: "88.81 / 24"; only the rate where the CPU use is unknown."""
    if not isinstance(rate_bits_per_s, float):
        return None
    rate = format_digits(rate_bits_per_s / 1e6, 5)
    return f"{rate} / {format_digits(cpu_percent, 4)}" if isinstance(cpu_percent, float) else rate


def cells_of_rate_and_cpu(values: Values) -> Values:
    """Returns the rate with the busy time of all programs, as published, and with that of the test alone."""
    names = ("throughput_bits_per_s", "server_cpu_mean_percent", "server_cpu_own_percent")
    rate, whole, own = (_median(values.get(name)) for name in names)
    return {
        "throughput_and_cpu": throughput_and_cpu(rate, whole),
        "throughput_and_own_cpu": throughput_and_cpu(rate, whole if own is None else own),
    }


def _median(value: Value) -> Value:
    return value.median if isinstance(value, Spread) else value


_LONGEST: Final = ImportColumn(
    "back_to_back_frames",
    "back-to-back value",
    "number",
    also=("back to back", "back-to-back frames", "longest burst", "burst", "average"),
)
BACK_TO_BACK_IMPORTS: Final = ImportTable(
    columns=(
        *(SIZE, *interval_columns(_LONGEST)),
        ImportColumn("minimum_frames", "minimum", "count", also=("min",)),
        ImportColumn("maximum_frames", "maximum", "count", also=("max",)),
        ImportColumn("standard_deviation_frames", "std. deviation", "number"),
        ImportColumn("repetitions", "repetitions", "count", also=("N", "trials")),
        ImportColumn("burst_frames_per_s", "burst rate", "frame_rate"),
        ImportColumn("percent_of_line_rate", "% of line rate", "percent"),
        ImportColumn("throughput_frames_per_s", "throughput", "frame_rate"),
        ImportColumn("implied_buffer_time_us", "implied buffer time", "time"),
        ImportColumn("corrected_buffer_time_us", "corrected buffer time", "time"),
        ImportColumn("corrected_buffer_frames", "corrected buffer", "number"),
        LINE_RATE,
    ),
    any_of=(_LONGEST.value,),
    line_rate=LINE_RATE.value,
    shares=(("burst_frames_per_s", "percent_of_line_rate"),),
    rising=(
        ("minimum_frames", _LONGEST.value, "maximum_frames"),
        ("corrected_buffer_time_us", "implied_buffer_time_us"),
    ),
    statistics=(
        ImportStatistics(
            parts="repetitions",
            number="repetitions",
            average=_LONGEST.value,
            deviation="standard_deviation_frames",
            minimum="minimum_frames",
            maximum="maximum_frames",
        ),
    ),
    caption="The longest burst of which nothing was lost (RFC 2544 section 26.4).",
)


_LATENCIES: Final = {
    "minimum": ("minimum latency", ("min latency", "latency min", "minimum", "min", "least latency")),
    "mean": ("average latency", ("mean latency", "avg latency", "latency avg", "average", "avg", "mean", "latency")),
    **{
        f"p{name.replace('.', '_')}": (f"p{name}", (f"latency p{name}", f"{name} percentile", f"percentile {name}"))
        for name in ("50", "90", "99", "99.9", "99.99")
    },
    "maximum": ("maximum latency", ("max latency", "latency max", "maximum", "max", "greatest latency")),
}
REQUEST_IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(
            "transactions_per_s",
            "transactions",
            "number",
            also=(
                "transactions/s",
                "requests/s",
                "requests per second",
                "requests",
                "request rate",
                "tps",
                "rps",
                "iops",
            ),
            is_above_zero=True,
        ),
        *(ImportColumn(f"latency_{part}_ns", name, "time", also=also) for part, (name, also) in _LATENCIES.items()),
        ImportColumn("requests", "requests timed", "count"),
        ImportColumn("workload", "tool", "text", also=("workload",), tells_apart=True),
        ImportColumn("mode", "mode", "text", tells_apart=True),
        ImportColumn("port", "port", "text", tells_apart=True),
        ImportColumn("transport", "transport", "text", also=("protocol",), tells_apart=True),
        ImportColumn("message_bytes", "message size", "count", also=("message",), tells_apart=True),
        ImportColumn("load", "load beside", "text", tells_apart=True),
        ImportColumn("basis", "latency of", "text"),
    ),
    any_of=("transactions_per_s", *(f"latency_{part}_ns" for part in _LATENCIES)),
    rising=(
        tuple(f"latency_{part}_ns" for part in _LATENCIES if part != "mean"),
        ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns"),
    ),
    caption="Requests a second, and the latency of a request, as the source defines it.",
)


def requests_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """Adds the parts of an imported row that name it: what the source says of port, transport, load and message."""
    size = parameters.get("message_bytes")
    said = (parameters.get("workload"), parameters.get("mode"), format_bytes(size) if isinstance(size, int) else None)
    told = {
        "part": "requests",
        "port": f"port {parameters['port']}" if "port" in parameters else "port not named",
        "transport": str(parameters["transport"]).upper() if "transport" in parameters else "not named",
        "load": parameters.get("load", "as the source had it"),
        "message": ", ".join(text for text in said if text) or "size not named",
    }
    return {**parameters, **told}, {"basis": "not named", **values}
