"""How the core clock is governed: driver, governor, limits, boost. Virtual machines rarely say."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_list, join_texts, part_of

_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*/"
_PATHS = (
    *(_POLICIES + name for name in ("scaling_driver", "scaling_governor", "scaling_min_freq", "scaling_max_freq")),
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
)


class _Policy(TypedDict):
    """What all CPUs have, each different value once."""

    driver: list[str] | None
    governor: list[str] | None
    minimum_hz: list[int] | None
    maximum_hz: list[int] | None
    boost: bool | None


def _tell_clock(facts: Facts, write: Write) -> str | None:
    policy, cpu = part_of(facts, "core_clock_policy"), part_of(facts, "cpu")
    limits = [(policy.get(name) or [cpu.get(name)])[0] for name in ("minimum_hz", "maximum_hz")]
    boost = policy.get("boost")
    return join_texts(
        f"{write('_hz', limits[0])} to {write('_hz', limits[1])}" if all(limits) else None,
        f"governor {join_list(policy.get('governor'))}" if policy.get("governor") else None,
        join_list(policy.get("driver")),
        None if boost is None else f"boost {'on' if boost else 'off'}",
    )


class Frequency(Fact):
    """From ``/sys/devices/system/cpu/cpufreq``."""

    kind = "core_clock_policy"
    shape = _Policy
    of_machine = True
    subjects = (Subject("Frequency policy", 110, _tell_clock),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_policies(await values_of(host, _PATHS))


def parse_policies(values: dict[str, str]) -> dict[str, Any]:
    """Distinct values over all CPUs; frequencies are in kHz there."""

    def distinct(name: str) -> list[str] | None:
        return sorted({value for path, value in values.items() if path.endswith(f"/{name}")}) or None

    def hertz(name: str) -> list[int] | None:
        return sorted(int(value) * 1000 for value in distinct(name) or []) or None

    no_turbo = values.get("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = values.get("/sys/devices/system/cpu/cpufreq/boost")
    return {
        "driver": distinct("scaling_driver"),
        "governor": distinct("scaling_governor"),
        "minimum_hz": hertz("scaling_min_freq"),
        "maximum_hz": hertz("scaling_max_freq"),
        "boost": no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None,
    }
