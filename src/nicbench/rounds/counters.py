"""What an interface counts, beside what tools say: bytes, packets, drops; PFC and ECN where there are any. Pure."""

from __future__ import annotations

import re
from typing import Final

from nicbench.judge.rounds import CARRIER_CHANGES
from nicbench.stats.rounds import REPEATED

SCRIPT: Final = (
    "soft() {{ for file in $(grep -lsx $1 /sys/class/infiniband/*/parent); do basename ${{file%/*}}; done; }}; "
    'grep -H "" /sys/class/net/{device}/statistics/*_bytes /sys/class/net/{device}/statistics/*_packets '
    "/sys/class/net/{device}/statistics/*_dropped /sys/class/net/{device}/statistics/*_errors; "
    'grep -sH "" /sys/class/net/{device}/carrier_changes /sys/class/net/{device}/lower_*/carrier_changes '
    "/sys/class/net/{device}/lower_*/lower_*/carrier_changes; "
    "ethtool -S {device}; "
    "for link in $(ls /sys/class/net/{device}/device/infiniband) $(soft {device}); do "
    'grep -H "" /sys/class/infiniband/$link/ports/1/hw_counters/*; done'
)
_FILE: Final = re.compile(r"^/sys/\S*/(?P<name>[^/:]+):(?P<value>\d+)$")
_CARRIER: Final = re.compile(r"/(?:lower_)?(?P<device>[^/]+)/carrier_changes:(?P<value>\d+)$")
_STATISTIC: Final = re.compile(r"^\s+(?P<name>[^\s:][^:]*):\s+(?P<value>\d+)$")
_TOLD: Final = re.compile(
    r"pause|pfc|ecn|cnp|discard|drop|out_of_buffer|no_buffer|roce|prio\d+_(?:rx|tx)_", re.IGNORECASE
)
"""Of a driver's hundreds of statistics, those that say why something was slow or lost."""


def is_telling(name: str) -> bool:
    """Whether that it did not rise is worth a word: pauses, marks, drops, what RDMA repeated."""
    return _TOLD.search(name) is not None or REPEATED.search(name) is not None


def counters_in(text: str) -> dict[str, int]:
    """By name, as kernel and driver write them; lines that are none are left out."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        of_carrier = _CARRIER.search(line)
        if of_carrier is not None:
            found[CARRIER_CHANGES + of_carrier["device"]] = int(of_carrier["value"])
            continue
        of_file, of_driver = _FILE.match(line), _STATISTIC.match(line)
        if of_file is not None:
            found[of_file["name"]] = int(of_file["value"])
        elif of_driver is not None and _TOLD.search(of_driver["name"]):
            found[of_driver["name"].strip()] = int(of_driver["value"])
    return found
