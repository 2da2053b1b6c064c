"""C-states: who chooses them, how long each takes to leave, and which are disabled. Waking costs latency."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

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


def _tell_idle(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "idle_states")
    states = part_of(found, "states")
    if not states:
        return "none used" if found.get("driver") == "none" else None
    told = []
    for name, state in states.items():
        exit_us, disabled = state.get("exit_latency_us"), state.get("disabled")
        off = "" if disabled in (None, "no") else ", disabled" if disabled == "yes" else f", disabled {disabled}"
        told.append(f"{name} ({exit_us} µs{off})" if exit_us is not None else f"{name}{off}")
    return join_texts(", ".join(told), found.get("driver"), by="; ")


class IdleStates(Fact):
    """From ``/sys/devices/system/cpu/cpuidle``."""

    kind = "idle_states"
    shape = _IdleStates
    of_machine = True
    subjects = (Subject("C-states", 130, _tell_idle),)

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
