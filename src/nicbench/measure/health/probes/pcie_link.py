"""Each adapter's PCIe link: one that was trained anew to a lower speed or width carries less."""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import HealthView, Probe, Speed, paths_and_values
from nicbench.measure.health.probes._pci import script_for_functions


class PcieLink(Probe):
    """Speed x width, in bits/s of each direction, before coding."""

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
