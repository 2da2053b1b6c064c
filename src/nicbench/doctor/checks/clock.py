"""The clock: the engine times frames with the processor's own counter, which the kernel must trust."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host

_COUNTERS = {"tsc": "the TSC", "arch_sys_counter": "the processor's counter"}
"""Those that the engine reads, as the kernel names them: of x86-64, and of arm64."""
_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class Clock(Examination):
    """The kernel's clock source."""

    kind = "clock_source"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        current = (await host.read_file(f"{_FOLDER}current_clocksource") or "").strip()
        available = (await host.read_file(f"{_FOLDER}available_clocksource") or "").split()
        return (judge(current, available),)


def judge(current: str, available: list[str]) -> Check:
    """The processor's counter is right; where the kernel has put it aside, latencies may be wrong."""
    name = "clock source"
    if current in _COUNTERS:
        return ok(name, current)
    if not current:
        return warning(name, "the kernel does not say which it uses: latencies may be wrong")
    counter = next((counter for counter in _COUNTERS if counter in available), None)
    text = f"the kernel uses {current} instead of {_COUNTERS.get(counter or 'tsc')}: latencies may be wrong"
    if counter is not None:
        return warning(name, text, f"echo {counter} > {_FOLDER}current_clocksource")
    return warning(name, f"{text}; it does not trust the TSC of this machine")
