"""OTG's metrics of flows and ports, from two tallies of the engine.

OTG knows no null: what is not known yet is 0 there, since clients fail where a field is missing. Of a flow that nobody
receives it will never be known what came back: such fields are left out. Bytes are with FCS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from nicbench.core.units import FRAME_OVERHEAD_BYTES
from nicbench.engine.generator import FlowColumns, FlowState, PortCounts
from nicbench.otg.flows import Flow

_FLOW_ALWAYS: Final = frozenset({"name", "port_tx", "port_rx"})
_OF_RECEIVERS: Final = frozenset({"frames_rx", "bytes_rx", "latency", "timestamps"})
_PORT_ALWAYS: Final = frozenset({"name"})
_OVERHEAD_BITS: Final = 8 * FRAME_OVERHEAD_BYTES


def flow_metrics(
    flows: Sequence[Flow],
    numbers: Iterable[int],
    now: FlowColumns,
    before: FlowColumns | None,
    elapsed_s: float,
    states: Sequence[FlowState],
) -> list[dict[str, Any]]:
    """Makes the metrics of these flows; ``before`` are the counts of ``elapsed_s`` ago, from which rates follow.

    ``states``: what clients are told, one for each number: a flow has stopped only after its drain. It is one loop over
    columns, since clients ask for thousands of flows all the time.
    """
    per_s = 1 / elapsed_s if before is not None and elapsed_s > 0 else 0.0
    earlier = before or now
    sent, sent_bytes, received, received_bytes = now.sent, now.sent_bytes, now.received, now.received_bytes
    sent_0, sent_bytes_0, received_0, received_bytes_0 = (
        earlier.sent,
        earlier.sent_bytes,
        earlier.received,
        earlier.received_bytes,
    )
    minimum_ns, maximum_ns, mean_ns = now.latency_minimum_ns, now.latency_maximum_ns, now.latency_mean_ns
    first_ns, last_ns, lost = now.first_received_ns, now.last_received_ns, now.lost
    metrics = []
    for number, state in zip(numbers, states, strict=True):
        flow, frames_tx, bytes_tx = flows[number], sent[number], sent_bytes[number]
        frames_rx, bytes_rx = received[number] or 0, received_bytes[number] or 0
        here_per_s = 0.0 if state is FlowState.STOPPED else per_s
        # A flow that was started anew has fewer than before: its rate is 0 until the next look.
        tx_frames = max(0.0, (frames_tx - sent_0[number]) * here_per_s)
        tx_bytes = max(0.0, (bytes_tx - sent_bytes_0[number]) * here_per_s)
        rx_frames = max(0.0, (frames_rx - (received_0[number] or 0)) * here_per_s)
        rx_bytes = max(0.0, (bytes_rx - (received_bytes_0[number] or 0)) * here_per_s)
        metric: dict[str, Any] = {
            "name": flow.name,
            "port_tx": flow.transmit,
            "port_rx": flow.receive_names,
            "transmit": state.value,
            "frames_tx": frames_tx,
            "frames_rx": frames_rx,
            "bytes_tx": bytes_tx,
            "bytes_rx": bytes_rx,
            "frames_tx_rate": tx_frames,
            "tx_l1_rate_bps": 8 * tx_bytes + _OVERHEAD_BITS * tx_frames,
            "tx_rate_bytes": tx_bytes,
            "tx_rate_bps": 8 * tx_bytes,
            "tx_rate_kbps": 8e-3 * tx_bytes,
            "tx_rate_mbps": 8e-6 * tx_bytes,
            "frames_rx_rate": rx_frames,
            "rx_l1_rate_bps": 8 * rx_bytes + _OVERHEAD_BITS * rx_frames,
            "rx_rate_bytes": rx_bytes,
            "rx_rate_bps": 8 * rx_bytes,
            "rx_rate_kbps": 8e-3 * rx_bytes,
            "rx_rate_mbps": 8e-6 * rx_bytes,
            "timestamps": {
                "first_timestamp_ns": float(first_ns[number] or 0),
                "last_timestamp_ns": float(last_ns[number] or 0),
            },
            "latency": {
                "minimum_ns": float(minimum_ns[number] or 0),
                "maximum_ns": float(maximum_ns[number] or 0),
                "average_ns": mean_ns[number] or 0.0,
            },
        }
        if flow.receive:
            metric["loss"] = 100 * (lost[number] or 0) / frames_tx if frames_tx else 0.0
        else:
            metric = {key: value for key, value in metric.items() if key not in _OF_RECEIVERS and "rx_" not in key}
        metrics.append(metric)
    return metrics


def port_metric(
    name: str,
    location: str,
    link_bits_per_s: float | None,
    now: PortCounts,
    before: PortCounts | None,
    elapsed_s: float,
    link_changed_ns: int,
    *,
    capturing: bool,
    transmitting: bool,
) -> dict[str, Any]:
    """Makes the metric of a port."""
    earlier, elapsed_s = (before, elapsed_s) if before is not None and elapsed_s > 0 else (now, 1.0)
    return {
        "name": name,
        "location": location,
        "link": "down" if now.link_up is False else "up",
        "capture": "started" if capturing else "stopped",
        "frames_tx": now.sent,
        "frames_rx": now.received,
        "bytes_tx": now.sent_bytes,
        "bytes_rx": now.received_bytes,
        "frames_tx_rate": _per_s(now.sent, earlier.sent, elapsed_s),
        "frames_rx_rate": _per_s(now.received, earlier.received, elapsed_s),
        "bytes_tx_rate": _per_s(now.sent_bytes, earlier.sent_bytes, elapsed_s),
        "bytes_rx_rate": _per_s(now.received_bytes, earlier.received_bytes, elapsed_s),
        "transmit": "started" if transmitting else "stopped",
        "last_change": link_changed_ns,
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


def _per_s(now: int, before: int, elapsed_s: float) -> float:
    """Returns how much a count rises in a second; 0 where it began anew in between."""
    return max(0.0, (now - before) / elapsed_s)
