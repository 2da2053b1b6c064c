"""Probes of network adapters: link, FEC, PHY, module, temperature, and PCI Express."""

from __future__ import annotations

import re
import shlex

from nicbench.core.reading import Measure
from nicbench.measure.health.base import (
    Counter,
    HealthView,
    Level,
    Probe,
    Speed,
    chips,
    number_of,
    paths_and_values,
    script_for_devices,
    script_for_functions,
    split_by_device,
)


class Carrier(Probe):
    """How often each interface's link changed its state (``/sys/class/net/DEVICE/carrier_changes``).

    One counter for each interface.
    """

    kind = "carrier"

    def script(self, view: HealthView) -> str:
        paths = (f"/sys/class/net/{shlex.quote(device)}/carrier_changes" for device in view.devices)
        return f'grep -sH "" {" ".join(paths)}' if view.devices else ""

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = []
        for path, lines in paths_and_values(text).items():
            changes = number_of(lines)
            if changes is not None:
                device = path.split("/")[-2]
                counters.append(Counter(device, "changes of the link", changes, Measure.LINK, "changes"))
        return tuple(counters)


_FEC_NAMES = {
    "corrected_blocks": (Measure.FEC_CORRECTED, "corrected FEC blocks"),
    "uncorrectable_blocks": (Measure.FEC_UNCORRECTED, "uncorrectable FEC blocks"),
}


class Fec(Probe):
    """Forward error correction of each link (``ethtool -I --show-fec``, since ethtool 5.13; IEEE 802.3 30.5.1.1.17 and
    18).

    Corrected blocks are a fibre's daily life at 25 Gb/s and more; a block that could not be corrected is lost frames.

    Blocks, corrected and not; lanes are parts of their sum and are left out.
    """

    kind = "fec"

    def script(self, view: HealthView) -> str:
        return script_for_devices(view, "ethtool -I --show-fec {}")

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = []
        for device, lines in split_by_device(text).items():
            for line in lines:
                name, _, value = line.partition(":")
                known = _FEC_NAMES.get(name.strip().lower())
                if known is not None and value.strip().isdecimal():
                    measure, what = known
                    counters.append(Counter(device, what, int(value), measure, "blocks"))
        return tuple(counters)


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
    """Errors that the physical layer counted (``ethtool -S``, and the group ``eth-phy`` that drivers share since 5.13).

    By names that are known of drivers; another name is not taken for an error.

    Every known counter of every interface of a card.
    """

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


_NOW = re.compile(r"^\s*Module temperature\s*:\s*(-?\d+(?:\.\d+)?) degrees C", re.MULTILINE)
_WARNING = re.compile(r"^\s*Module temperature high warning threshold\s*:\s*(-?\d+(?:\.\d+)?) degrees C", re.MULTILINE)


class Module(Probe):
    """The temperature of each pluggable module, and at what it warns (``ethtool -m``, SFF-8472, SFF-8636, CMIS).

    Degrees Celsius; the module itself says which are too many.
    """

    kind = "module"
    slow = True

    def script(self, view: HealthView) -> str:
        cards = tuple(device for device in view.devices if view.drivers.get(device) not in ("veth", "", None))
        return script_for_devices(HealthView(view.host, cards), "ethtool -m {}")

    def read(self, text: str, view: HealthView) -> tuple[Level, ...]:
        levels = []
        for device, lines in split_by_device(text).items():
            text = "\n".join(lines)
            now, warning = _NOW.search(text), _WARNING.search(text)
            if now is not None:
                # A module without thresholds has zeros there.
                limit = float(warning[1]) if warning is not None and float(warning[1]) > 0 else None
                levels.append(Level(f"module of {device}", float(now[1]), "C", limit))
        return tuple(levels)


class CardTemperature(Probe):
    """The temperature of each adapter, with the limit that its driver tells (hwmon).

    Of each adapter's sensors the one nearest to its limit.
    """

    kind = "card-temperature"

    def script(self, view: HealthView) -> str:
        cards = [f"/sys/class/net/{shlex.quote(device)}/device/hwmon/hwmon*" for device in view.devices]
        files = " ".join(
            f"{card}/{name}" for card in cards for name in ("name", "temp*_input", "temp*_max", "temp*_crit")
        )
        return f'grep -sH "" {files}' if cards else ""

    def read(self, text: str, view: HealthView) -> tuple[Level, ...]:
        return tuple(
            Level(f"{folder.split('/')[4]} ({name})", now, "C", limit)
            for folder, (name, now, limit) in chips(text).items()
            if folder.startswith("/sys/class/net/")
        )


class PcieLink(Probe):
    """Each adapter's PCIe link: one that was trained anew to a lower speed or width carries less.

    Speed x width, in bits/s of each direction, before coding.
    """

    kind = "pcie-link"

    def script(self, view: HealthView) -> str:
        return script_for_functions(view, 'grep -sH "" "$p"/current_link_speed "$p"/current_link_width')

    def read(self, text: str, view: HealthView) -> tuple[Speed, ...]:
        links: dict[str, dict[str, str]] = {}
        for path, lines in paths_and_values(text).items():
            folder, _, name = path.rpartition("/")
            links.setdefault(folder.rpartition("/")[2], {})[name] = lines[0]
        speeds = []
        for address, link in links.items():
            speed, _, unit = link.get("current_link_speed", "").partition(" ")
            width = link.get("current_link_width", "")
            # "Unknown" where the device is not on PCI Express; width 0 or 255 where nobody knows.
            if unit.startswith("GT/s") and width.isdecimal() and 0 < int(width) <= 32:
                what = f"{speed} GT/s x{width}"
                speeds.append(Speed(f"PCI {address}", what, float(speed) * 1e9 * int(width), Measure.PCIE_LINK))
        return tuple(speeds)


_FILES = {
    "aer_dev_correctable": (Measure.PCIE_CORRECTED, "corrected"),
    "aer_dev_nonfatal": (Measure.PCIE_UNCORRECTED, "uncorrected"),
    "aer_dev_fatal": (Measure.PCIE_UNCORRECTED, "fatal"),
}


class PcieErrors(Probe):
    """Errors of PCI Express (Advanced Error Reporting): of each adapter, and of the port of the bus it hangs on.

    ``/sys/bus/pci/devices/ADDRESS/aer_dev_{correctable,nonfatal,fatal}``: a line for each kind of error, then the total
    (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).

    One counter for each kind of error that has been seen, or may be.
    """

    kind = "pcie-errors"

    def script(self, view: HealthView) -> str:
        return script_for_functions(view, 'grep -sH "" "$p"/aer_dev_* "${p%/*}"/aer_dev_*')

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = {}
        for path, lines in paths_and_values(text).items():
            folder, _, name = path.rpartition("/")
            if name not in _FILES:
                continue
            measure, words = _FILES[name]
            where = f"PCI {folder.rpartition('/')[2]}"
            for line in lines:
                error, _, count = line.rpartition(" ")
                if not error or error.startswith("TOTAL_"):
                    continue
                what = f"{words} PCIe error {error}"
                counters[where, what] = Counter(where, what, int(count), measure)
        return tuple(counters.values())
