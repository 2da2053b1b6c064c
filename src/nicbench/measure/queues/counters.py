"""The counters of receive queues and cores, as drivers and the kernel print them. Pure.

Each driver has names of its own for the frames of a queue. A queue may have several counters that add up to its frames
(unicast, multicast, broadcast).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

_RX_QUEUE: Final = r"rx_queue_(\d+)_packets"

QUEUE_COUNTERS: Final[Mapping[str, tuple[str, ...]]] = {
    # drivers/net/ethernet/intel: ixgbe_get_strings, igb_get_strings, igc_ethtool_get_strings, ice_get_strings;
    # i40e_gstrings_stats and iavf since 4.20, before that rx-N.rx_packets.
    "ixgbe": (_RX_QUEUE,),
    "ixgbevf": (_RX_QUEUE,),
    "igb": (_RX_QUEUE,),
    "igc": (_RX_QUEUE,),
    "ice": (_RX_QUEUE,),
    "i40e": (r"rx-(\d+)\.(?:rx_)?packets",),
    "iavf": (r"rx-(\d+)\.(?:rx_)?packets",),
    # en_stats.c, rq_stats_desc; en_ethtool.c of mlx4.
    "mlx5_core": (r"rx(\d+)_packets",),
    "mlx4_en": (r"rx(\d+)_packets",),
    # bnxt_ethtool.c, bnxt_ring_rx_stats_str.
    "bnxt_en": (r"\[(\d+)\]: rx_[umb]cast_packets",),
    # ena_ethtool.c, ena_stats_rx_strings.
    "ena": (r"queue_(\d+)_rx_cnt",),
    # virtio_net.c, virtnet_get_strings: rxN_packets since 6.9.
    "virtio_net": (_RX_QUEUE, r"rx(\d+)_packets"),
    # efx ethtool: efx_describe_per_queue_stats.
    "sfc": (r"rx-(\d+)\.rx_packets",),
    # gve_ethtool.c, gve_gstrings_rx_stats.
    "gve": (r"rx_packets\[(\d+)\]",),
    # netvsc_drv.c, netvsc_get_strings; mana_ethtool.c.
    "hv_netvsc": (_RX_QUEUE,),
    "mana": (r"rx_(\d+)_packets",),
    # ionic_stats.c; qede_ethtool.c.
    "ionic": (r"rx_(\d+)_pkts",),
    "qede": (r"(\d+): rx_rcv_pkts",),
    # veth.c, veth_rq_stats_desc: frames that the queue's poller took, which runs with GRO or an XDP program.
    "veth": (r"rx_queue_(\d+)_xdp_packets",),
}
"""By driver, patterns of the names in ``ethtool -S``; the group is the queue's number."""

_STATISTIC: Final = re.compile(r"^\s*(?P<name>\S.*?):\s+(?P<value>\d+)\s*$")
_CPU: Final = re.compile(r"^CPU(\d+)$")


def parse_queues(text: str, driver: str) -> tuple[int, ...]:
    """Frames of each receive queue, from 0 on, out of ``ethtool -S``; empty where the driver prints none of them."""
    patterns = [re.compile(pattern) for pattern in QUEUE_COUNTERS.get(driver, ())]
    found: dict[int, int] = defaultdict(int)
    for line in text.splitlines():
        statistic = _STATISTIC.match(line)
        if statistic is None:
            continue
        for pattern in patterns:
            if queue := pattern.fullmatch(statistic["name"]):
                found[int(queue[1])] += int(statistic["value"])
                break
    return tuple(found.get(queue, 0) for queue in range(max(found, default=-1) + 1))


def parse_softnet(text: str) -> dict[int, int]:
    """Frames that the stack handled, by CPU, out of ``/proc/net/softnet_stat`` (net/core/net-procfs.c).

    The number of the CPU is the thirteenth column since 5.10; before, lines are the CPUs that are online.
    """
    frames: dict[int, int] = {}
    for number, line in enumerate(text.splitlines()):
        columns = line.split()
        cpu = int(columns[12], 16) if len(columns) > 12 else number
        frames[cpu] = int(columns[0], 16)
    return frames


def parse_network_softirqs(text: str) -> dict[int, int]:
    """Softirqs of received frames by CPU, the row ``NET_RX`` of ``/proc/softirqs``; empty where there is none."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    row = next((row[1:] for row in rows if row[0] == "NET_RX:"), [])
    cpus = [int(found[1]) for word in (rows[0] if rows else ()) if (found := _CPU.match(word))]
    return dict(zip(cpus, map(int, row), strict=False))
