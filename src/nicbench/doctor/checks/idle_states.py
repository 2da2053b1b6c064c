"""C-states: how long a core takes to wake up, which a frame that meets it asleep waits for.

Source: Documentation/admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import values
from nicbench.hosts.base import Host

_CPUS = "/sys/devices/system/cpu/"
_FILES = tuple(f"{_CPUS}cpu*/cpuidle/state*/{name}" for name in ("name", "latency", "disable"))
_PATH = re.compile(r"/cpu(\d{1,5})/cpuidle/state(\d{1,2})/(name|latency|disable)$")
# A frame waits so long beside some 10 us in a kernel's forwarding; C1 of today's processors is left in 1 to 2 us.
_TOLERATED_US = 10


class IdleStates(Examination):
    """From ``cpuidle`` of every CPU."""

    kind = "idle_states"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge(await values(host, *_FILES)),)


def judge(found: Mapping[str, str]) -> Check:
    """States that take longer than 10 us to leave should be disabled while latency is measured."""
    name = "idle states"
    states: dict[tuple[int, int], dict[str, str]] = {}
    for path, value in found.items():
        if place := _PATH.search(path):
            states.setdefault((int(place[1]), int(place[2])), {})[place[3]] = value
    if not states:
        return ok(
            name,
            "not chosen by this kernel: a virtual machine's host lets its cores sleep as it likes, and may wake them "
            "up beside a neighbour. A guest of KVM can keep them awake: modprobe cpuidle-haltpoll force=1",
        )
    deep = {
        number: (state.get("name", f"state{number}"), int(state["latency"]))
        for (_, number), state in sorted(states.items())
        if state.get("disable") == "0"
        and state.get("latency", "").isdecimal()
        and int(state["latency"]) > _TOLERATED_US
    }
    if not deep:
        return ok(name, f"none that takes more than {_TOLERATED_US} µs to leave is enabled")
    listed = ", ".join(f"{state} ({latency_us} µs)" for state, latency_us in deep.values())
    files = " ".join(f"{_CPUS}cpu*/cpuidle/state{number}/disable" for number in sorted(deep))
    text = f"cores may sleep in {listed} and take so long to wake: latencies at low loads are longer by that"
    return warning(name, text, f"echo 1 | tee {files}")
