"""The core clock: who sets it. One that follows the load makes a device slow at low loads and fast at high ones.

Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.
"""

from __future__ import annotations

from collections.abc import Mapping

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import values
from nicbench.hosts.base import Host

_CPUS = "/sys/devices/system/cpu/"
_GOVERNORS = f"{_CPUS}cpufreq/policy*/scaling_governor"
_NO_TURBO, _BOOST = f"{_CPUS}intel_pstate/no_turbo", f"{_CPUS}cpufreq/boost"


class CoreClock(Examination):
    """From ``/sys/devices/system/cpu``: governor and turbo."""

    kind = "core_clock"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        found = await values(host, _GOVERNORS, _NO_TURBO, _BOOST)
        return (judge_governor(found), judge_turbo(found))


def judge_governor(found: Mapping[str, str]) -> Check:
    """``performance`` is right; every other one lowers the clock when there is little to do."""
    name = "core clock"
    governors = sorted({value for path, value in found.items() if path.endswith("/scaling_governor")})
    if not governors:
        return ok(name, "not set by this kernel (a virtual machine's host sets it, and may change it during a trial)")
    if governors == ["performance"]:
        return ok(name, "governor performance")
    text = (
        f"governor {', '.join(governors)}: cores slow down at low loads, so latencies grow and differ from run to run"
    )
    # The path of every CPU is a link to its policy's.
    return warning(name, text, f"echo performance | tee {_CPUS}cpu*/cpufreq/scaling_governor")


def judge_turbo(found: Mapping[str, str]) -> Check:
    """Above the nominal clock there is no promise: heat and busy neighbours end it."""
    name = "turbo"
    switch = next((path for path in (_NO_TURBO, _BOOST) if path in found), None)
    if switch is None:
        return ok(name, "no switch for it here")
    off = "1" if switch == _NO_TURBO else "0"
    if found[switch] == off:
        return ok(name, "off: the clock does not depend on heat or neighbours")
    text = "on: a warm or busy machine is slower than a cool one, so rates of two runs may differ by that"
    return warning(name, text, f"echo {off} > {switch}")
