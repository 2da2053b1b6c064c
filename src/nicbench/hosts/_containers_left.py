"""Containers of nicbench whose controller is gone: found by their labels and removed."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.hosts._container_engine import BOOT_LABEL, OWNER_LABEL
from nicbench.hosts.base import Host
from nicbench.tuning.owner import Owner, boot_id

_ENDED = ("exited", "dead", "stopped", "removing")
_TRIES = 2  # podman's first removal of a container whose monitor was killed fails, and mends what the second needs


async def remove_left_containers(machine: Host, engine: Sequence[str]) -> list[str]:
    """Removes what dead runs left on this machine; gives the containers' ids. Those of others are not looked at."""
    listed = await machine.run((*engine, "ps", "--all", "--quiet", f"--filter=label={OWNER_LABEL}"), check=False)
    if listed.status != 0 or not listed.stdout.split():
        return []  # an engine that cannot list says why when it cannot start
    form = f'{{{{.Id}}}} {{{{.State.Status}}}} {{{{index .Config.Labels "{OWNER_LABEL}"}}}}'
    form += f' {{{{index .Config.Labels "{BOOT_LABEL}"}}}}'
    shown = await machine.run((*engine, "inspect", f"--format={form}", *listed.stdout.split()), check=False)
    booted = (await machine.read_file("/proc/sys/kernel/random/boot_id") or "").strip()
    left = [line.split()[0] for line in shown.stdout.splitlines() if is_left(line, booted)]
    for container in left:
        for _ in range(_TRIES):
            if (await machine.run((*engine, "rm", "--force", container), check=False)).status == 0:
                break
    return left


def is_left(line: str, booted: str) -> bool:
    """Whether ``id state owner boot`` is of a dead run. ``booted`` is the id of the machine's own boot.

    A container ends by itself when its controller does; here are those whose engine was killed too, or the machine.
    """
    words = line.split()
    if len(words) != 4:
        return False
    _, state, owner_text, boot = words
    pid, _, rest = owner_text.partition(":")
    ticks, _, owner_boot = rest.partition(":")
    if not (pid.isdigit() and ticks.isdigit()):
        return False
    if boot != booted or state in _ENDED:
        return True
    # Only of a controller on this very machine can be said that it is dead.
    owner = Owner(pid=int(pid), start_ticks=int(ticks), boot_id=owner_boot)
    return owner_boot == boot_id() and not owner.is_alive
