"""The clock: the engine times frames with the TSC, which the kernel must trust."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host

_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class Clock(Examination):
    """The kernel's clock source."""

    kind = "clock_source"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        current = (await host.read_file(f"{_FOLDER}current_clocksource") or "").strip()
        available = (await host.read_file(f"{_FOLDER}available_clocksource") or "").split()
        return (judge(current, available),)


def judge(current: str, available: list[str]) -> Check:
    """The TSC is right; where the kernel has put it aside, latencies may be wrong."""
    name = "clock source"
    if current == "tsc":
        return ok(name, "tsc")
    if not current:
        return warning(name, "the kernel does not say which it uses: latencies may be wrong")
    text = f"the kernel uses {current} instead of the TSC: latencies may be wrong"
    if "tsc" in available:
        return warning(name, text, f"echo tsc > {_FOLDER}current_clocksource")
    return warning(name, f"{text}; it does not trust the TSC of this machine")
