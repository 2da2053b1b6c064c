"""How the machine trades speed for power: platform profile, energy preference and bias of its processors."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_list, join_texts, part_of

_PLATFORM = "/sys/firmware/acpi/platform_profile"
_ASPM = "/sys/module/pcie_aspm/parameters/policy"
_PER_CPU = {
    "energy_performance_preference": "energy_preference",
    "energy_perf_bias": "energy_bias",
}
_PATHS = (
    _PLATFORM,
    _ASPM,
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
    "/sys/devices/system/cpu/intel_pstate/status",
    "/sys/devices/system/cpu/amd_pstate/status",
)


class _Power(TypedDict):
    """Of the platform and of all CPUs."""

    platform_profile: str | None
    energy_preference: list[str] | None
    energy_bias: list[str] | None
    scaling_mode: str | None
    pci_express_power: str | None


def _tell_power(facts: Facts, write: Write) -> str | None:
    found, tuned = part_of(facts, "power_policy"), part_of(facts, "tuned")
    profile = f"tuned profile {tuned['profile']}" if tuned.get("profile") else None
    return join_texts(
        f"platform profile {found['platform_profile']}" if found.get("platform_profile") else None,
        f"energy preference {join_list(found.get('energy_preference'))}" if found.get("energy_preference") else None,
        f"{profile}{'' if tuned.get('running') else ' (not running)'}" if profile else None,
        f"PCI Express power {found['pci_express_power']}" if found.get("pci_express_power") else None,
    )


class PowerPolicy(Fact):
    """From ``/sys/firmware/acpi``, ``cpufreq`` and ``pcie_aspm``."""

    kind = "power_policy"
    shape = _Power
    of_machine = True
    subjects = (Subject("Power policy", 120, _tell_power),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_power_policy(await values_of(host, _PATHS))


def parse_power_policy(values: dict[str, str]) -> dict[str, Any]:
    """Distinct values over all CPUs; of the PCI Express policy (``default [performance] powersave``) the chosen one."""
    facts: dict[str, Any] = {"platform_profile": values.get(_PLATFORM)}
    for file, name in _PER_CPU.items():
        facts[name] = sorted({value for path, value in values.items() if path.endswith(f"/{file}")}) or None
    facts["scaling_mode"] = next((value for path, value in values.items() if path.endswith("_pstate/status")), None)
    chosen = values.get(_ASPM, "").partition("[")[2].partition("]")
    facts["pci_express_power"] = chosen[0] if chosen[1] else None
    return facts
