"""What drivers call their drop counters (``ethtool -S``), where each counts, and which wider counter holds it again.

Known names only: a driver prints hundreds of counters, and one that is taken for a loss and is none spoils the
ledger. What is not in this table is not read; what it counts stays in the interface's own statistics or unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Known:
    """A counter by name: a pattern, in which ``*`` stands for a queue's number.

    ``receive`` says on which side of the interface. ``within`` are names of the interface's own statistics (of ``struct
    rtnl_link_stats64``) that hold these frames as well: which of them depends on the driver's version, so each is
    asked in turn. ``beside``: why it is no loss to be added up.
    """

    name: str
    place: str
    receive: bool = True
    within: tuple[str, ...] = ()
    beside: str | None = None


_RING = "receive ring"
_NOT_LOST = "frames that waited for a buffer, most of which were received all the same"
_PORT = "of the whole port, whatever function or queue the frames were for"
_XDP = "frames that an XDP program dropped on purpose; whose they were it does not say"

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    # Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; en_main.c, mlx5e_get_stats.
    "mlx5_core": (
        # In rx_dropped before Linux 6.9; discards there since 6.13.
        Known("rx_out_of_buffer", _RING, within=("rx_missed_errors", "rx_dropped")),
        Known("rx_discards_phy", "port's packet buffer", within=("rx_dropped",)),
        Known("rx_crc_errors_phy", "port", within=("rx_errors",)),
        Known("rx_steer_missed_packets", "steering: no rule for the frame"),
        Known("rx_oversize_pkts_sw_drop", "receive: longer than the MTU"),
        Known("tx_discards_phy", "port", receive=False, within=("tx_dropped",)),
        Known("tx_queue_dropped", "send queue", receive=False, within=("tx_dropped",)),
        Known("rx_xdp_drop", "XDP program", beside=_XDP),
    ),
    # drivers/net/ethernet/intel/ixgbe: ixgbe_update_stats.
    "ixgbe": (
        Known("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        Known("rx_no_dma_resources", _RING),
        Known("rx_crc_errors", "port", within=("rx_errors",)),
        Known("rx_no_buffer_count", _RING, beside=_NOT_LOST),
    ),
    # drivers/net/ethernet/intel/igb, igc, e1000e: *_update_stats; rnbc counts shortages (datasheets, RNBC).
    "igb": (
        Known("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        Known("rx_crc_errors", "port", within=("rx_errors",)),
        Known("rx_queue_*_drops", _RING),
        Known("rx_no_buffer_count", _RING, beside=_NOT_LOST),
    ),
    "igc": (
        Known("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        Known("rx_crc_errors", "port", within=("rx_errors",)),
        Known("rx_no_buffer_count", _RING, beside=_NOT_LOST),
    ),
    "e1000e": (
        Known("rx_missed_errors", "port's packet buffer", within=("rx_missed_errors",)),
        Known("rx_crc_errors", "port", within=("rx_errors",)),
        Known("rx_no_buffer_count", _RING, beside=_NOT_LOST),
    ),
    # drivers/net/ethernet/intel/i40e: i40e_update_vsi_stats, i40e_update_pf_stats (GLPRT_* are the port's).
    "i40e": (
        Known("rx_dropped", _RING, within=("rx_dropped", "rx_missed_errors")),
        Known("port.rx_dropped", "port's packet buffer", beside=_PORT),
        Known("port.rx_crc_errors", "port", within=("rx_errors",)),
        Known("port.tx_dropped_link_down", "port", receive=False),
    ),
    # drivers/net/ethernet/intel/ice: ice_update_vsi_stats; *.nic are the port's.
    "ice": (
        Known("rx_dropped", _RING, within=("rx_dropped",)),
        Known("rx_dropped.nic", "port's packet buffer", beside=_PORT),
        Known("rx_crc_errors.nic", "port", within=("rx_errors",)),
        Known("tx_dropped_link_down.nic", "port", receive=False),
    ),
    # drivers/net/ethernet/broadcom/bnxt: bnxt_get_ring_stats, bnxt_add_prev_stats.
    "bnxt_en": (
        Known("rx_total_discard_pkts", _RING, within=("rx_missed_errors",)),
        Known("rx_total_oom_discards", "memory for buffers", within=("rx_dropped",)),
        Known("rx_fcs_err_frames", "port", within=("rx_errors",)),
        Known("rx_stat_discard", "port's packet buffer", beside=_PORT),
        Known("tx_total_discard_pkts", "send queue", receive=False, within=("tx_dropped",)),
    ),
    # drivers/net/virtio_net.c: virtnet_stats.
    "virtio_net": (
        Known("rx_queue_*_drops", _RING, within=("rx_dropped",)),
        Known("rx*_drops", _RING, within=("rx_dropped",)),
        Known("rx_queue_*_xdp_drops", "XDP program", beside=_XDP),
        Known("rx*_xdp_drops", "XDP program", beside=_XDP),
    ),
    # drivers/net/ethernet/amazon/ena: ena_get_stats64 has the device's own drops.
    "ena": (
        Known("rx_drops", _RING, within=("rx_dropped",)),
        Known("bw_in_allowance_exceeded", "bandwidth that the instance may use"),
        Known("pps_allowance_exceeded", "frame rate that the instance may use"),
    ),
    # drivers/net/ethernet/sfc: efx_net_stats; user guide UG1523.
    "sfc": (
        Known("port_rx_nodesc_drops", _RING, within=("rx_dropped",)),
        Known("port_rx_overflow", "port's packet buffer", beside=_PORT),
    ),
    # drivers/net/ethernet/chelsio/cxgb4: cxgb_get_stats.
    "cxgb4": (
        Known("rx_bg*_frames_dropped", "port's packet buffer", within=("rx_missed_errors",)),
        Known("rx_fcs_errors", "port", within=("rx_errors",)),
    ),
}
