"""What drivers say they dropped, and where (``ethtool -S``): rings without buffers, a port's full packet buffer, XDP.

Which names mean what is in ``_drivers.py``; a veth has rules of its own, because both ends of it count the same frame.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from nicbench.measure.ledger._drivers import KNOWN, Known
from nicbench.measure.ledger.base import Count, Source, Stage, View, key_of

POLLED = "polled"
"""Counts frames that the poller of a veth handled: it polls where it has an XDP program, or GRO."""
EXCESS = "rx_drops"
"""Counts what the poller of a veth dropped: above all, frames for a full AF_XDP socket."""
_XDP = "frames that an XDP program dropped on purpose; whose they were the driver does not say"
_MARK = "@ "


class Drivers(Source):
    """The known counters of every interface whose driver is known."""

    kind = "drivers"

    def script(self, view: View) -> str:
        devices = [device for device in view.devices if view.drivers.get(device) in {*KNOWN, "veth"}]
        return "; ".join(f"echo {_MARK}{shlex.quote(device)}; ethtool -S {shlex.quote(device)}" for device in devices)

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        counts: list[Count] = []
        for device, statistics in devices_and_statistics(text).items():
            if view.drivers.get(device) == "veth":
                counts.extend(_of_veth(device, statistics, view))
            else:
                counts.extend(_of_card(device, statistics, view))
        return tuple(counts)


def devices_and_statistics(text: str) -> dict[str, dict[str, int]]:
    """``ethtool -S`` of several devices, each after a line with its name; lines that are no number are left out."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith(_MARK):
            current = found.setdefault(line.removeprefix(_MARK).strip(), {})
            continue
        name, colon, value = line.rpartition(":")
        if colon and value.strip().isdecimal():
            current[name.strip()] = int(value)
    return found


def sum_over_queues(pattern: str, statistics: Mapping[str, int]) -> int | None:
    """The sum over all queues (``*``) of one counter; None where there is none of the name."""
    wanted = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
    values = [value for name, value in statistics.items() if wanted.fullmatch(name)]
    return sum(values) if values else None


def _of_card(device: str, statistics: Mapping[str, int], view: View) -> Iterator[Count]:
    for known in KNOWN[view.drivers[device]]:
        frames = sum_over_queues(known.name, statistics)
        if frames is not None:
            yield Count(
                key=view.key(device, f"driver {known.name}"),
                name=f"{device} {known.name}",
                frames=frames,
                stage=_stage(known, view),
                place=f"{view.side}, {device}, {known.place}",
                within=tuple(view.key(device, name) for name in known.within),
                beside=known.beside,
            )


def _stage(known: Known, view: View) -> Stage:
    if known.receive:
        return view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE)
    return view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT)


def _of_veth(device: str, statistics: Mapping[str, int], view: View) -> Iterator[Count]:
    """``veth_get_stats64``: what the poller drops is in rx_dropped, what XDP cannot send in both ends' statistics."""
    receive, transmit = view.key(device, "rx_dropped"), view.key(device, "tx_dropped")
    incoming = view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE)
    outgoing = view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT)
    side, peer = view.peers.get(device, (view.side, ""))
    far = (key_of(side, peer, "rx_dropped"),) if peer else ()
    queue = f"{side}, queue of {peer} (veth peer of {device})" if peer else f"{view.side}, transmit side of {device}"
    rows = (
        ("rx_queue_*_drops", EXCESS, incoming, f"{view.side}, poller of {device}", (receive,), None),
        ("rx_queue_*_xdp_drops", "xdp_drops", incoming, f"{view.side}, XDP program of {device}", (), _XDP),
        ("tx_queue_*_xdp_xmit_errors", "xdp_xmit_errors", outgoing, queue, (transmit, *far), None),
        ("rx_queue_*_xdp_tx_errors", "xdp_tx_errors", outgoing, queue, (transmit, *far), None),
    )
    for pattern, name, stage, place, also_in, beside in rows:
        frames = sum_over_queues(pattern, statistics)
        if frames is not None:
            key, shown = view.key(device, name), f"{device} {pattern}"
            yield Count(key, shown, frames, stage, place, also_in=also_in, beside=beside)
    polled = sum_over_queues("rx_queue_*_xdp_packets", statistics)
    if polled is not None:
        yield Count(view.key(device, POLLED), f"{device} rx_queue_*_xdp_packets", polled)
