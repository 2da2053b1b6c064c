"""Errors of PCI Express (Advanced Error Reporting): of each adapter, and of the port of the bus it hangs on.

``/sys/bus/pci/devices/ADDRESS/aer_dev_{correctable,nonfatal,fatal}``: a line for each kind of error, then the total
(Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
"""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, HealthView, Probe, paths_and_values
from nicbench.measure.health.probes._pci import script_for_functions

_FILES = {
    "aer_dev_correctable": (Measure.PCIE_CORRECTED, "corrected"),
    "aer_dev_nonfatal": (Measure.PCIE_UNCORRECTED, "uncorrected"),
    "aer_dev_fatal": (Measure.PCIE_UNCORRECTED, "fatal"),
}


class PcieErrors(Probe):
    """One counter for each kind of error that has been seen, or may be."""

    kind = "pcie-errors"

    def script(self, view: HealthView) -> str:
        return script_for_functions(view, 'grep -sH "" "$p"/aer_dev_* "${p%/*}"/aer_dev_*')

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters: dict[tuple[str, str], Counter] = {}
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
