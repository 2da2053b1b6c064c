"""What the engine counted of a transmission: OTG's metrics of flows and ports, and the trial and results of the run
folder. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.reading import Counts, sum_of_known
from nicbench.core.result import Result, ResultVerdict, Value
from nicbench.core.trial import Health, Latency, PortReading, Purpose, Reading, StreamReading, TrialRequest, Uncounted
from nicbench.core.units import FRAME_OVERHEAD_BYTES
from nicbench.engine.generator import FlowColumns, FlowLatency, FlowState, FlowTagged, FlowTally, PortCounts
from nicbench.engine.reading import require_consistent
from nicbench.methods.served import Transmission
from nicbench.otg.flows import Flow
from nicbench.stats.latency import add_percentiles, merge

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

    ``states`` goes to clients, one for each number: a flow has stopped only after its drain. It is one loop over
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


def tagged_metrics(
    flow: Flow, counted: Iterable[FlowTagged], filters: Mapping[str, Sequence[str]], columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Makes the metrics of a flow by the values of its tags; ``filters`` are the wanted values by tag, or none: all."""
    metrics = []
    for each in counted:
        values = dict(zip(flow.tags, each.values or (), strict=False))
        if any(
            values.get(name) is None or (wanted and not _is_among(values[name], wanted))
            for name, wanted in filters.items()
        ):
            continue
        metric = {
            "tags": [{"name": name, "value": {"choice": "hex", "hex": value}} for name, value in values.items()],
            "frames_rx": each.frames,
            "bytes_rx": each.bytes,
            "timestamps": {"first_timestamp_ns": float(each.first_ns), "last_timestamp_ns": float(each.last_ns)},
        }
        metrics.append(_select(metric, columns, _TAGGED_ALWAYS))
    return metrics


_TAGGED_ALWAYS: Final = frozenset({"tags"})


def _is_among(value: str, wanted: Iterable[str]) -> bool:
    """Whether a number in hexadecimal is among others, with or without zeros before them."""
    return any(each.lower().removeprefix("0x").lstrip("0") == value.lstrip("0") for each in wanted)


def loss_duration_ms(metric: Mapping[str, Any], rate_frames_per_s: float) -> float:
    """Returns the time that the lost frames of a flow take at the rate at which it sends."""
    return float(metric.get("loss", 0.0) / 100 * metric["frames_tx"] * 1e3 / rate_frames_per_s)


def group_by_name(flows: Sequence[Flow]) -> dict[str, list[int]]:
    """Returns the engine's flows of each flow of OTG, by its name: one for each port that sends."""
    numbers: dict[str, list[int]] = {}
    for number, flow in enumerate(flows):
        numbers.setdefault(flow.name, []).append(number)
    return numbers


def sum_parts(metrics: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one metric for each name: counts and rates are sums, loss is that of all frames sent."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for metric in metrics:
        parts.setdefault(metric["name"], []).append(metric)
    return [each[0] if len(each) == 1 else _sum_of(each) for each in parts.values()]


def _sum_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = parts[0]
    summed = {key: sum(part[key] for part in parts) for key, value in first.items() if isinstance(value, int | float)}
    states = [part["transmit"] for part in parts]
    summed["transmit"] = next((state for state in ("started", "paused") if state in states), "stopped")
    for key in ("port_tx", "port_rx"):
        summed[key] = ",".join(dict.fromkeys(name for part in parts for name in part[key].split(",")))
    if "loss" in first:
        sent = summed["frames_tx"]
        summed["loss"] = sum(part["loss"] * part["frames_tx"] for part in parts) / sent if sent else 0.0
    if "packet_loss_duration" in first:
        summed["packet_loss_duration"] = {"value": max(part["packet_loss_duration"]["value"] for part in parts)}
    received = [part for part in parts if part.get("frames_rx")]
    if received:
        latency, count = [part["latency"] for part in received], summed["frames_rx"]
        times = [part["timestamps"] for part in received]
        summed["latency"] = {
            "minimum_ns": min(each["minimum_ns"] for each in latency),
            "maximum_ns": max(each["maximum_ns"] for each in latency),
            "average_ns": sum(part["latency"]["average_ns"] * part["frames_rx"] for part in received) / count,
        }
        summed["timestamps"] = {
            "first_timestamp_ns": min(each["first_timestamp_ns"] for each in times),
            "last_timestamp_ns": max(each["last_timestamp_ns"] for each in times),
        }
    return {**first, **summed}


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


def lag_metric(name: str, ports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Makes the metric of a group from the metrics of its ports; the group is up if one port is."""
    sums = ("frames_tx", "frames_rx", "bytes_tx", "bytes_rx")
    up = sum(port["link"] == "up" for port in ports)
    return {
        "name": name,
        "oper_status": "up" if up else "down",
        "member_ports_up": up,
        **{key: sum(port[key] for port in ports) for each in sums for key in (each, f"{each}_rate")},
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


TEST: Final = "transmissions"
MOST_ROWS: Final = 64
"""Flows that have a row of their own in the report; of more there is one row for all, and a file with each."""
_OVERRUN: Final = "receive_overrun"


@dataclass(frozen=True, slots=True)
class Sent:
    """One flow from its start to its end: the flow, and the engine's last tally of it."""

    flow: Flow
    tally: FlowTally


def request_of(sent: Sequence[Sent], drain_s: float) -> TrialRequest:
    """Returns what clients asked for: the sum of the flows' rates, at their mean size."""
    rates = [(each.flow.program["rate_frames_per_s"], each.flow.mean_frame_bytes) for each in sent]
    total = sum(rate for rate, _ in rates)
    return TrialRequest(
        frame_bytes=sum(rate * size for rate, size in rates) / total if total else 64,
        load_frames_per_s=total,
        duration_s=_sending_ns(sent) / 1e9,
        drain_s=drain_s,
        settle_s=0.0,
        purpose=Purpose.SERVED,
    )


def reading_of(
    sent: Sequence[Sent],
    ports: tuple[Sequence[PortCounts], Sequence[PortCounts]],
    health: Health | None,
    drain_s: float,
    *,
    is_cut: bool = False,
) -> Reading:
    """Returns the reading of a transmission; ``ports`` are the engine's counts of its ports before and after it.

    A flow of which it is not known what became of its frames has no stream: nobody counts it, or it was sending when
    the transmission was cut off (``is_cut``). Of thousands of flows it takes a second, nearly all of it for their
    distributions. EngineError where the counts contradict themselves.
    """
    known = [] if is_cut else [each for each in sent if each.tally.lost is not None]
    has_rows = len(known) <= MOST_ROWS
    streams = tuple(_stream(each, with_percentiles=has_rows) for each in known)
    unknown = [each.tally for each in sent if is_cut or each.tally.lost is None]
    transmit_ns = _sending_ns(sent)
    latencies = [stream.latency for stream in streams if stream.latency is not None]
    reading = Reading(
        transmit_ns=transmit_ns,
        sending_ns=transmit_ns,
        drain_s=drain_s,
        counts=Counts.sum_of(stream.counts for stream in streams),
        uncounted=Uncounted(
            flows=len(unknown),
            sent=sum(each.sent for each in unknown),
            received=sum_of_known(each.received for each in unknown),
        )
        if unknown
        else None,
        streams=streams if has_rows else (),
        ports=tuple(_port(before, after) for before, after in zip(*ports, strict=True)),
        latency=merge(latencies),
        health=health or Health(),
    )
    return require_consistent(reading)


def _sending_ns(sent: Sequence[Sent]) -> int:
    first = [each.tally.first_sent_ns for each in sent if each.tally.first_sent_ns is not None]
    last = [each.tally.last_sent_ns for each in sent if each.tally.last_sent_ns is not None]
    return max(1, max(last, default=0) - min(first, default=0))


def _stream(sent: Sent, *, with_percentiles: bool) -> StreamReading:
    """Every frame counts once, by whichever of its ports it came: copies at others do not count again."""
    tally = sent.tally
    signed = sent.flow.counted == "signature"
    lost, corrupted = tally.lost or 0, tally.corrupted or 0
    counts = Counts(
        intended=tally.sent + tally.unsent_tester + tally.unsent_backpressure,
        sent=tally.sent,
        unsent_tester=tally.unsent_tester,
        unsent_backpressure=tally.unsent_backpressure,
        received=tally.sent - lost - corrupted,
        lost=lost,
        late=None,
        duplicated=tally.duplicated if signed else None,
        reordered=tally.reordered if signed else None,
        corrupted=tally.corrupted if signed else None,
        corrupted_copies=None,
        unattributed=None,
        corrupted_unattributed=None,
        foreign=None,
        stale=None,
    )
    return StreamReading(name=sent.flow.name, counts=counts, latency=_latency_of(tally.latency, with_percentiles))


def _latency_of(told: FlowLatency | None, with_percentiles: bool = True) -> Latency | None:
    """Returns the latency of a flow, with percentiles where its histogram is there; None where it has none."""
    if told is None or not told.count:
        return None
    latency = Latency(source="software", **told.model_dump())
    return add_percentiles(latency) if with_percentiles and latency.histogram is not None else latency


def _port(before: PortCounts, after: PortCounts) -> PortReading:
    rises = {name: count - before.counters.get(name, 0) for name, count in after.counters.items()}
    return PortReading(
        name=after.name,
        arrived=after.received - before.received,
        foreign=after.foreign - before.foreign,
        stale=after.stale - before.stale,
        receive_overrun=rises.get(_OVERRUN),
        counters={name: rise for name, rise in rises.items() if rise > 0 and name != _OVERRUN},
        link_changed=before.link_up != after.link_up,
    )


def results_of(
    number: int, trial_id: str, sent: Sequence[Sent], reading: Reading, disturbances: Sequence[str], *, is_cut: bool
) -> tuple[Result, ...]:
    """Returns a row for each flow of a transmission, or one for all where they are many.

    Of one that was cut off (``is_cut``) it is not known what was lost: frames were under way.
    """
    verdict = ResultVerdict.DISTURBED if disturbances else ResultVerdict.VALID
    rows: list[tuple[str, dict[str, Value]]]
    if len(sent) <= MOST_ROWS:
        rows = [(each.flow.name, _values(each)) for each in sent]
    else:
        rows = [(f"all {len(sent)} flows", _values_of_all(sent, reading))]
    return tuple(
        Result(
            id=f"{TEST}/{number}/{index}",
            test=TEST,
            method=Transmission.kind,
            scope="per flow" if len(sent) <= MOST_ROWS else "sums of all flows",
            parameters={"transmission": number, "flow": name},
            values={"transmission": number, "flow": name, **values, **(_NOT_KNOWN if is_cut else {})},
            verdict=verdict,
            disturbances=tuple(disturbances),
            trials=(trial_id,),
        )
        for index, (name, values) in enumerate(rows, start=1)
    )


_NOT_KNOWN: Final[dict[str, Value]] = {"lost_frames": None, "loss_percent": None}


def _values(sent: Sent) -> dict[str, Value]:
    tally = sent.tally
    values: dict[str, Value] = {
        "sent_frames": tally.sent,
        "received_frames": tally.received,
        "lost_frames": tally.lost,
        "loss_percent": _percent(tally.lost, tally.sent),
        "sent_frames_per_s": _rate(tally.sent, _sending_ns([sent])),
        "duplicated_frames": tally.duplicated,
        "reordered_frames": tally.reordered,
        "corrupted_frames": tally.corrupted,
    }
    return {**values, **_latency_values(_latency_of(tally.latency))}


def _values_of_all(sent: Sequence[Sent], reading: Reading) -> dict[str, Value]:
    """Sums over the flows of which it is known what became of their frames; what was sent is of all flows."""
    counts = reading.counts
    total = sum(each.tally.sent for each in sent)
    return {
        "sent_frames": total,
        "received_frames": counts.received if reading.is_counted else None,
        "lost_frames": counts.lost if reading.is_counted else None,
        "loss_percent": _percent(counts.lost, counts.sent),
        "sent_frames_per_s": _rate(total, reading.transmit_ns),
        "duplicated_frames": counts.duplicated,
        "reordered_frames": counts.reordered,
        "corrupted_frames": counts.corrupted,
        **_latency_values(reading.latency),
    }


def _latency_values(latency: Latency | None) -> dict[str, Value]:
    return {
        "latency_minimum_ns": latency.minimum_ns if latency else None,
        "latency_mean_ns": latency.mean_ns if latency else None,
        "latency_p99_ns": latency.percentiles_ns.get("99") if latency else None,
        "latency_maximum_ns": latency.maximum_ns if latency else None,
    }


def _percent(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else 100.0 * part / whole


def _rate(frames: int, sending_ns: int) -> float | None:
    """Frames per second between the first and the last frame; None of a single one."""
    return (frames - 1) * 1e9 / sending_ns if frames > 1 else None
