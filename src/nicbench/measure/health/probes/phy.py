"""Errors that the physical layer counted (``ethtool -S``, and the group ``eth-phy`` that drivers share since 5.13).

By names that are known of drivers; another name is not taken for an error.
"""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, HealthView, Probe, script_for_devices, split_by_device

_SYMBOL, _UNCORRECTED, _CORRECTED = Measure.SYMBOL_ERRORS, Measure.FEC_UNCORRECTED, Measure.FEC_CORRECTED
_NAMES = {
    # IEEE 802.3 30.3.2.1.5, any driver.
    "eth-phy-SymbolErrorDuringCarrier": _SYMBOL,
    # mlx5: Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
    "rx_symbol_err_phy": _SYMBOL,
    "rx_pcs_symbol_err_phy": _SYMBOL,
    "rx_crc_errors_phy": _SYMBOL,
    "link_down_events_phy": Measure.LINK,
    # bnxt: bnxt_ethtool.c, rx port statistics
    "rx_fcs_err_frames": _SYMBOL,
    "rx_fec_corrected_blocks": _CORRECTED,
    "rx_fec_uncorrectable_blocks": _UNCORRECTED,
    # ice, i40e, ixgbe, igb: *_ethtool.c
    "rx_crc_errors.nic": _SYMBOL,
    "port.rx_crc_errors": _SYMBOL,
    "port.illegal_bytes": _SYMBOL,
    "rx_crc_errors": _SYMBOL,
    "illegal_bytes.nic": _SYMBOL,
    # cxgb4, sfc, qede
    "rx_symbol_errors": _SYMBOL,
    "port_rx_symbol_error": _SYMBOL,
    "rx_fcs_errors": _SYMBOL,
}


class Phy(Probe):
    """Every known counter of every interface of a card."""

    kind = "phy"

    def script(self, view: HealthView) -> str:
        # A veth's statistics hold nothing of the kind.
        cards = tuple(device for device in view.devices if view.drivers.get(device) not in ("veth", "", None))
        of_cards = HealthView(view.host, cards)
        return script_for_devices(of_cards, "ethtool -S {0}; ethtool -S {0} --groups eth-phy")

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = {}
        for device, lines in split_by_device(text).items():
            for line in lines:
                name, _, value = line.rpartition(":")
                measure = _NAMES.get(name.strip())
                if measure is not None and value.strip().isdecimal():
                    unit = "changes" if measure is Measure.LINK else "errors"
                    counters[device, name] = Counter(device, name.strip(), int(value), measure, unit)
        return tuple(counters.values())
