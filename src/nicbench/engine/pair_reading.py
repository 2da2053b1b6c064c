"""Puts the readings of two engines together: of each stream what one sent, and what the other received. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_OF_THE_SENDER = (
    *("intended", "sent", "unsent_tester", "unsent_backpressure", "maximum_burst"),
    *("transmit_gaps", "lateness", "gap_errors"),
)
_SUMS = ("total_gap_ns", "gaps", "iterations", "idle_iterations", "voluntary_switches", "involuntary_switches")
_OF_A_WORKER = ("longest_gap_ns", "total_gap_ns", "gaps", "iterations", "idle_iterations", "core_clock_hz")

Raw = Mapping[str, Any]


def join_readings(
    near: Raw,
    far: Raw,
    streams: Sequence[Raw],
    far_ports: Collection[int],
    bursts_ns: Sequence[Sequence[float]],
    drift: float,
) -> dict[str, Any]:
    """The reply to ``drain`` as one engine would give it, from those of both.

    ``streams`` are those of ``start``, ``bursts_ns`` the mean times of bursts by engine and stream. By ``drift`` the
    far engine's clock gains on the near one's, by which all times since the trial began are given.
    """
    both = (near, far)
    joined = []
    for number, stream in enumerate(streams):
        sender, receiver = (int(stream[port] in far_ports) for port in ("transmit_port", "receive_port"))
        sent, received = both[sender]["streams"][number], both[receiver]["streams"][number]
        one = {**received, **{name: sent.get(name) for name in _OF_THE_SENDER}}
        # Since the receiver was told, the sending port may have completed more: the reading of the sender says it.
        one["lost"] = max(
            0,
            one["sent"] - one["received"] - one.get("late", 0) - one["corrupted"] - one.get("unattributed", 0),
        )
        if one.get("latency") and sender != receiver:
            burst_ns = bursts_ns[sender][number]
            uncertain_ns = max(burst_ns, one["latency"].get("uncertainty_ns") or 0.0)
            one["latency"] = {**one["latency"], "uncertainty_ns": uncertain_ns}
        rates = (1.0, 1.0 / (1.0 + drift))
        joined.append(_by_near_clock(one, sending=rates[sender], receiving=rates[receiver]))
    sending = {int(stream["transmit_port"] in far_ports) for stream in streams}
    return {
        **near,
        "streams": joined,
        "ports": [both[number in far_ports]["ports"][number] for number in range(len(near["ports"]))],
        "transmit_ns": max(both[one]["transmit_ns"] for one in sending),
        "sending_ns": max(both[one]["sending_ns"] for one in sending),
        "sent_while_sending": sum(one["sent_while_sending"] for one in both),
        "health": _join_health(near, far),
    }


def _by_near_clock(stream: Raw, *, sending: float, receiving: float) -> dict[str, Any]:
    """The stream with its times multiplied by what the clock of the engine is worth that took them."""
    arrivals, jump_ns = stream.get("arrivals"), stream.get("last_jump_ns")
    return {
        **stream,
        "arrivals": arrivals and _scaled(arrivals, receiving),
        "last_jump_ns": None if jump_ns is None else round(jump_ns * sending),
    }


def _scaled(times: Raw, rate: float) -> dict[str, Any]:
    return {
        name: _scaled(value, rate) if isinstance(value, Mapping) else value if value is None else round(value * rate)
        for name, value in times.items()
    }


def least_ways(
    near: Raw, far: Raw, streams: Sequence[Raw], far_ports: Collection[int]
) -> tuple[float | None, float | None]:
    """The least time of a frame from the near engine to the far one, and back; None where none came.

    A time below 0 is one by which the stamps of both clocks say that a frame came before it was sent.
    """
    least: list[float | None] = [None, None]
    for number, stream in enumerate(streams):
        sender, receiver = (int(stream[port] in far_ports) for port in ("transmit_port", "receive_port"))
        latency = (near, far)[receiver]["streams"][number].get("latency")
        if sender == receiver or not latency:
            continue
        time_ns = -latency["negative_maximum_ns"] if latency.get("negative") else latency["minimum_ns"]
        known = least[sender]
        least[sender] = time_ns if known is None else min(known, time_ns)
    return least[0], least[1]


def _join_health(near: Raw, far: Raw) -> dict[str, Any]:
    """The health of both engines as of two workers of one; the DUT's CPUs are watched by the near one."""
    both = [near["health"], far["health"]]
    steps = [one["clock_step_ns"] for one in both if one.get("clock_step_ns") is not None]
    return {
        **both[0],
        "longest_gap_ns": max(one["longest_gap_ns"] for one in both),
        "clock_step_ns": max(steps, key=abs, default=None),
        **{name: _sum_known([one.get(name) for one in both]) for name in _SUMS},
        "workers": [
            {**{name: one["health"].get(name) for name in _OF_A_WORKER}, "sent": _sent_by(one)} for one in (near, far)
        ],
    }


def _sent_by(reading: Raw) -> int:
    """What an engine sent itself: of the other's streams it has no schedule."""
    return sum(stream["sent"] for stream in reading["streams"] if stream["intended"])


def _sum_known(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
