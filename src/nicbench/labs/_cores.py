"""Which CPU does what in a lab on one machine. Pure: text of /proc in, map out."""

from __future__ import annotations

import re

from nicbench.labs.base import CoreMap
from nicbench.model.cpu_list import parse_cpu_list

_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)


def cpus_of_status(text: str) -> tuple[int, ...]:
    """The CPUs that a process may use, from the text of /proc/PID/status."""
    found = _ALLOWED.search(text)
    return parse_cpu_list(found[1]) if found else (0,)


def core_map(cpus: tuple[int, ...], *, dut_apart: bool) -> CoreMap:
    """The worker on the first CPU, the DUT on the next; the rest, if any, keep house.

    Without a CPU of its own, or with ``dut_apart`` false, the DUT runs in softirq on the worker's: shared. An empty
    ``housekeeping`` says that the controller has no CPU of its own either; it sleeps during a trial.
    """
    if len(cpus) > 1 and dut_apart:
        return CoreMap(worker=cpus[0], dut=(cpus[1],), housekeeping=cpus[2:], shared=False)
    return CoreMap(worker=cpus[0], dut=(cpus[0],), housekeeping=cpus[1:], shared=True)
