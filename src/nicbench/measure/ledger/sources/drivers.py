"""What drivers say they dropped, and where (``ethtool -S``): rings without buffers, a port's full packet buffer, XDP.

A table has what drivers call these counters, where each counts, and which wider counter holds it again. Known names
only: a driver prints hundreds of counters, and one that is wrongly taken for a loss spoils the ledger. What is not
in the table is not read; what it counts stays in the interface's own statistics or unexplained. A veth has rules of its
own, because both ends of it count the same frame.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.measure.ledger.base import Count, Side, Source, Stage, View, key_of


@frozen
class KnownCounter:
    """A counter by name: a pattern, in which ``*`` stands for a queue's number.

    ``receive`` says on which side of the interface. ``within`` are names of the interface's own statistics (of ``struct
    rtnl_link_stats64``) that hold these frames as well: which of them depends on the driver's version, so each is
    asked in turn. ``also_in`` is the driver's own wider counter that holds each of these frames again.
    ``why_not_lost``: why it does not add to the losses. ``rejects``: it counts frames that were refused for what they
    are (spoilt, too long, for nobody here), not for want of room.
    """

    name: str
    place: str
    receive: bool = True
    within: tuple[str, ...] = ()
    also_in: str | None = None
    why_not_lost: str | None = None
    rejects: bool = False


_RING = "receive ring"
_NOT_LOST = "frames that waited for a buffer, most of which were received all the same"
_PORT = "of the whole port, whatever function or queue the frames were for"
_XDP = "frames that an XDP program dropped on purpose; whose they were it does not say"

KNOWN: Final = {
    # Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; en_main.c, mlx5e_get_stats.
    "mlx5_core": (
        # In rx_dropped before Linux 6.9; discards there since 6.13.
        KnownCounter("rx_out_of_buffer", _RING, within=("rx_missed_errors", "rx_dropped")),
        KnownCounter("rx_discards_phy", "port's packet buffer", within=("rx_dropped",)),
        KnownCounter("rx_crc_errors_phy", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_steer_missed_packets", "steering: no rule for the frame", rejects=True),
        KnownCounter("rx_oversize_pkts_sw_drop", "receive: longer than the MTU", rejects=True),
        KnownCounter("tx_discards_phy", "port", receive=False, within=("tx_dropped",)),
        KnownCounter("tx_queue_dropped", "send queue", receive=False, within=("tx_dropped",)),
        KnownCounter("rx_xdp_drop", "XDP program", why_not_lost=_XDP),
    ),
    # drivers/net/ethernet/intel/ixgbe: ixgbe_update_stats.
    "ixgbe": (
        KnownCounter("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        KnownCounter("rx_no_dma_resources", _RING),
        KnownCounter("rx_crc_errors", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_no_buffer_count", _RING, why_not_lost=_NOT_LOST),
    ),
    # drivers/net/ethernet/intel/igb, igc, e1000e: *_update_stats; rnbc counts shortages (datasheets, RNBC).
    "igb": (
        KnownCounter("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        KnownCounter("rx_crc_errors", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_queue_*_drops", _RING),
        KnownCounter("rx_no_buffer_count", _RING, why_not_lost=_NOT_LOST),
    ),
    "igc": (
        KnownCounter("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        KnownCounter("rx_crc_errors", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_no_buffer_count", _RING, why_not_lost=_NOT_LOST),
    ),
    "e1000e": (
        KnownCounter("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        KnownCounter("rx_crc_errors", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_no_buffer_count", _RING, why_not_lost=_NOT_LOST),
    ),
    # drivers/net/ethernet/intel/i40e: i40e_update_vsi_stats, i40e_update_pf_stats (GLPRT_* are the port's).
    "i40e": (
        KnownCounter("rx_dropped", _RING, within=("rx_dropped", "rx_missed_errors")),
        KnownCounter("port.rx_dropped", "port's packet buffer", why_not_lost=_PORT),
        KnownCounter("port.rx_crc_errors", "port", within=("rx_errors",), rejects=True),
        KnownCounter("port.tx_dropped_link_down", "port", receive=False),
    ),
    # drivers/net/ethernet/intel/ice: ice_update_vsi_stats; *.nic are the port's.
    "ice": (
        KnownCounter("rx_dropped", _RING, within=("rx_dropped",)),
        KnownCounter("rx_dropped.nic", "port's packet buffer", why_not_lost=_PORT),
        KnownCounter("rx_crc_errors.nic", "port", within=("rx_errors",), rejects=True),
        KnownCounter("tx_dropped_link_down.nic", "port", receive=False),
    ),
    # drivers/net/ethernet/broadcom/bnxt: bnxt_get_ring_stats, bnxt_add_prev_stats.
    "bnxt_en": (
        KnownCounter("rx_total_discard_pkts", _RING, within=("rx_missed_errors",)),
        KnownCounter("rx_total_oom_discards", "memory for buffers", within=("rx_dropped",)),
        KnownCounter("rx_fcs_err_frames", "port", within=("rx_errors",), rejects=True),
        KnownCounter("rx_stat_discard", "port's packet buffer", why_not_lost=_PORT),
        KnownCounter("tx_total_discard_pkts", "send queue", receive=False, within=("tx_dropped",)),
    ),
    # drivers/net/virtio_net.c: virtnet_stats; receive_small and receive_mergeable count what a program drops twice.
    "virtio_net": (
        KnownCounter("rx_queue_*_drops", _RING, within=("rx_dropped",)),
        KnownCounter("rx*_drops", _RING, within=("rx_dropped",)),
        KnownCounter("rx_queue_*_xdp_drops", "XDP program", also_in="rx_queue_*_drops", why_not_lost=_XDP),
        KnownCounter("rx*_xdp_drops", "XDP program", also_in="rx*_drops", why_not_lost=_XDP),
    ),
    # drivers/net/ethernet/amazon/ena: ena_get_stats64 has the device's own drops.
    "ena": (
        KnownCounter("rx_drops", _RING, within=("rx_dropped",)),
        KnownCounter("bw_in_allowance_exceeded", "bandwidth that the instance may use"),
        KnownCounter("pps_allowance_exceeded", "frame rate that the instance may use"),
    ),
    # drivers/net/ethernet/sfc: efx_net_stats; user guide UG1523.
    "sfc": (
        KnownCounter("port_rx_nodesc_drops", _RING, within=("rx_dropped",)),
        KnownCounter("port_rx_overflow", "port's packet buffer", why_not_lost=_PORT),
    ),
    # drivers/net/ethernet/chelsio/cxgb4: cxgb_get_stats.
    "cxgb4": (
        KnownCounter("rx_bg*_frames_dropped", "port's packet buffer", within=("rx_missed_errors",)),
        KnownCounter("rx_fcs_errors", "port", within=("rx_errors",), rejects=True),
    ),
}


POLLED = "polled"
"""Counts frames that the poller of a veth handled: it polls where it has an XDP program, or GRO."""
EXCESS = "rx_drops"
"""Counts what the poller of a veth dropped: above all, frames for a full AF_XDP socket."""
_VETH_XDP = "frames that an XDP program dropped on purpose; whose they were the driver does not say"
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
                counts.extend(_veth_counts(device, statistics, view))
            else:
                counts.extend(_card_counts(device, statistics, view))
        return tuple(counts)


def devices_and_statistics(text: str) -> dict[str, dict[str, int]]:
    """``ethtool -S`` of several devices, each after a line with its name; lines without a number are left out."""
    found: dict[str, dict[str, int]] = {}
    current = {}
    for line in text.splitlines():
        if line.startswith(_MARK):
            current = found.setdefault(line.removeprefix(_MARK).strip(), {})
            continue
        name, colon, value = line.rpartition(":")
        if colon and value.strip().isdecimal():
            current[name.strip()] = int(value)
    return found


def sum_over_queues(pattern: str, statistics: Mapping[str, int]) -> int | None:
    """Returns the sum over all queues (``*``) of one counter; None if the driver has none of the name."""
    wanted = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
    values = [value for name, value in statistics.items() if wanted.fullmatch(name)]
    return sum(values) if values else None


def _card_counts(device: str, statistics: Mapping[str, int], view: View) -> Iterator[Count]:
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
                also_in=() if known.also_in is None else (view.key(device, f"driver {known.also_in}"),),
                why_not_lost=known.why_not_lost,
                by_tester=view.side is not Side.DUT and not known.rejects,
            )


def _stage(known: KnownCounter, view: View) -> Stage:
    if known.receive:
        return view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE)
    return view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT)


def _veth_counts(device: str, statistics: Mapping[str, int], view: View) -> Iterator[Count]:
    """``veth_get_stats64``: what the poller drops is in rx_dropped, what XDP cannot send in both ends' statistics."""
    receive, transmit = view.key(device, "rx_dropped"), view.key(device, "tx_dropped")
    incoming = view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE)
    outgoing = view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT)
    side, peer = view.peers.get(device, (view.side, ""))
    far = (key_of(side, peer, "rx_dropped"),) if peer else ()
    queue = f"{side}, queue of {peer} (veth peer of {device})" if peer else f"{view.side}, transmit side of {device}"
    rows = (
        ("rx_queue_*_drops", EXCESS, incoming, f"{view.side}, poller of {device}", (receive,), None),
        ("rx_queue_*_xdp_drops", "xdp_drops", incoming, f"{view.side}, XDP program of {device}", (), _VETH_XDP),
        ("tx_queue_*_xdp_xmit_errors", "xdp_xmit_errors", outgoing, queue, (transmit, *far), None),
        ("rx_queue_*_xdp_tx_errors", "xdp_tx_errors", outgoing, queue, (transmit, *far), None),
    )
    for pattern, name, stage, place, also_in, why_not_lost in rows:
        frames = sum_over_queues(pattern, statistics)
        if frames is not None:
            key, shown = view.key(device, name), f"{device} {pattern}"
            yield Count(key, shown, frames, stage, place, also_in=also_in, why_not_lost=why_not_lost)
    polled = sum_over_queues("rx_queue_*_xdp_packets", statistics)
    if polled is not None:
        yield Count(view.key(device, POLLED), f"{device} rx_queue_*_xdp_packets", polled)
