"""C-states: who chooses them, how long each takes to leave, and which are disabled. Waking costs latency."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_FOLDER = "/sys/devices/system/cpu/cpuidle/"
_PATHS = (
    f"{_FOLDER}current_driver",
    f"{_FOLDER}current_governor",
    f"{_FOLDER}current_governor_ro",
    *(f"/sys/devices/system/cpu/cpu*/cpuidle/state*/{name}" for name in ("name", "latency", "disable")),
)
_STATE = re.compile(r"/cpu(\d+)/cpuidle/state(\d+)/(name|latency|disable)$")


class _State(TypedDict):
    """One state."""

    exit_latency_us: int | None
    disabled: str | None


class _IdleStates(TypedDict):
    """Of all CPUs; states by the driver's names."""

    driver: str | None
    governor: str | None
    states: dict[str, _State]


class IdleStates(Fact):
    """From ``/sys/devices/system/cpu/cpuidle``."""

    kind = "idle_states"
    shape = _IdleStates
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_idle_states(await values_of(host, _PATHS))


def parse_idle_states(values: dict[str, str]) -> dict[str, Any]:
    """States in their order with the time to leave each; disabled: yes, no, or the CPUs on which it is."""
    states: dict[int, dict[str, Any]] = {}
    disabled: dict[int, dict[int, bool]] = {}
    for path, value in values.items():
        found = _STATE.search(path)
        if not found:
            continue
        cpu, number, what = int(found[1]), int(found[2]), found[3]
        if what == "disable":
            disabled.setdefault(number, {})[cpu] = value != "0"
        else:
            state = states.setdefault(number, {})
            state["name" if what == "name" else "exit_latency_us"] = value if what == "name" else int(value)
    driver = values.get(f"{_FOLDER}current_driver")
    governor = values.get(f"{_FOLDER}current_governor") or values.get(f"{_FOLDER}current_governor_ro")
    return {
        "driver": driver,
        "governor": governor,
        "states": {
            str(state.get("name", number)): {
                "exit_latency_us": state.get("exit_latency_us"),
                "disabled": _on_which(disabled.get(number, {})),
            }
            for number, state in sorted(states.items())
        },
    }


def _on_which(cpus: dict[int, bool]) -> str | None:
    on = sorted(cpu for cpu, is_so in cpus.items() if is_so)
    if not cpus:
        return None
    return "no" if not on else "yes" if len(on) == len(cpus) else f"on CPUs {', '.join(map(str, on))}"
