"""Metrics of flows and ports, as OTG has them, from two tallies of the engine.

OTG knows no null: what is not known yet is 0 there, since clients fail where a field is missing. Only ``loss`` is left
out, of a flow that nobody receives. Bytes are with FCS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nicbench.core.units import FRAME_OVERHEAD_BYTES
from nicbench.engine.generator import FlowLatency, FlowState, FlowTally, PortCounts
from nicbench.otg.flows import Flow

_FLOW_ALWAYS: Final = frozenset({"name", "port_tx", "port_rx"})
_PORT_ALWAYS: Final = frozenset({"name"})


def flow_metric(
    flow: Flow, now: FlowTally, before: FlowTally | None, elapsed_s: float, state: FlowState
) -> dict[str, Any]:
    """Makes the metric of a flow; ``before`` is its tally of ``elapsed_s`` ago, from which rates follow.

    ``state`` is what clients are told: a flow has stopped only after its drain.
    """
    sent, received = now.sent, now.received or 0
    metric: dict[str, Any] = {
        "name": flow.name,
        "port_tx": flow.transmit,
        "port_rx": ",".join(flow.receive),
        "transmit": state.value,
        "frames_tx": sent,
        "frames_rx": received,
        "bytes_tx": now.sent_bytes,
        "bytes_rx": now.received_bytes or 0,
        **_rates("tx", *_sent_per_s(now, before, elapsed_s)),
        **_rates("rx", *_received_per_s(now, before, elapsed_s)),
        "timestamps": {
            "first_timestamp_ns": float(now.first_received_ns or 0),
            "last_timestamp_ns": float(now.last_received_ns or 0),
        },
        "latency": _latency(now.latency),
    }
    if flow.receive:
        metric["loss"] = 100 * (now.lost or 0) / sent if sent else 0.0
    return metric


def _latency(latency: FlowLatency | None) -> dict[str, float]:
    return {
        "minimum_ns": float(latency.minimum_ns) if latency else 0.0,
        "maximum_ns": float(latency.maximum_ns) if latency else 0.0,
        "average_ns": latency.mean_ns if latency else 0.0,
    }


def port_metric(
    name: str,
    location: str,
    link_bits_per_s: float | None,
    now: PortCounts,
    before: PortCounts | None,
    elapsed_s: float,
    *,
    capturing: bool,
    transmitting: bool,
) -> dict[str, Any]:
    """Makes the metric of a port."""
    frames_tx_rate, bytes_tx_rate = _sent_per_s(now, before, elapsed_s)
    frames_rx_rate, bytes_rx_rate = _received_per_s(now, before, elapsed_s)
    return {
        "name": name,
        "location": location,
        "link": "down" if now.link_up is False else "up",
        "capture": "started" if capturing else "stopped",
        "frames_tx": now.sent,
        "frames_rx": now.received,
        "bytes_tx": now.sent_bytes,
        "bytes_rx": now.received_bytes,
        "frames_tx_rate": frames_tx_rate,
        "frames_rx_rate": frames_rx_rate,
        "bytes_tx_rate": bytes_tx_rate,
        "bytes_rx_rate": bytes_rx_rate,
        "transmit": "started" if transmitting else "stopped",
        "last_change": 0,
        "speed": round((link_bits_per_s or 0) / 1e6),
    }


def select_flow_columns(metric: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns the columns that a request names, all where it names none."""
    return _select(metric, names, _FLOW_ALWAYS)


def select_port_columns(metric: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns the columns that a request names, all where it names none."""
    return _select(metric, names, _PORT_ALWAYS)


def _select(metric: dict[str, Any], names: Iterable[str], always: frozenset[str]) -> dict[str, Any]:
    wanted = set(names)
    return {key: value for key, value in metric.items() if key in wanted | always} if wanted else metric


def _sent_per_s(
    now: FlowTally | PortCounts, before: FlowTally | PortCounts | None, elapsed_s: float
) -> tuple[float, float]:
    """Returns frames and bytes sent in a second; 0 where a flow was started anew in between."""
    if before is None or elapsed_s <= 0:
        return 0.0, 0.0
    frames, content = now.sent - before.sent, now.sent_bytes - before.sent_bytes
    return max(0.0, frames / elapsed_s), max(0.0, content / elapsed_s)


def _received_per_s(
    now: FlowTally | PortCounts, before: FlowTally | PortCounts | None, elapsed_s: float
) -> tuple[float, float]:
    """Returns frames and bytes received in a second, as ``_sent_per_s`` those sent."""
    if before is None or elapsed_s <= 0:
        return 0.0, 0.0
    frames = (now.received or 0) - (before.received or 0)
    content = (now.received_bytes or 0) - (before.received_bytes or 0)
    return max(0.0, frames / elapsed_s), max(0.0, content / elapsed_s)


_RATES: Final = {
    way: (
        f"frames_{way}_rate",
        f"{way}_l1_rate_bps",
        f"{way}_rate_bytes",
        f"{way}_rate_bps",
        f"{way}_rate_kbps",
        f"{way}_rate_mbps",
    )
    for way in ("tx", "rx")
}


def _rates(way: str, frames_per_s: float, bytes_per_s: float) -> dict[str, float]:
    bits = 8 * bytes_per_s
    line = bits + 8 * FRAME_OVERHEAD_BYTES * frames_per_s
    return dict(zip(_RATES[way], (frames_per_s, line, bytes_per_s, bits, bits / 1e3, bits / 1e6), strict=True))
