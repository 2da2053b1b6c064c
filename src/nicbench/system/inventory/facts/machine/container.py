"""The container that a host is: engine, runtime, image, what it may use. False where it is none."""

from __future__ import annotations

from typing import Any, Final, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_FORMATS = {
    "podman": "{{.OCIRuntime}}|{{.Image}}|{{.ImageDigest}}",
    "docker": "{{.HostConfig.Runtime}}|{{.Image}}|",
}


# Of the container's first process, seen from the machine: the files of cgroup 2 (cpu.max) lie in one tree, those of
# cgroup 1 in one for each controller (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/).
_BOUNDS: Final = """
grep -E '^(Cpus|Mems)_allowed_list:' "/proc/$1/status"
while IFS=: read -r _ controllers path; do
    case ,$controllers, in
    ,,) for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
            grep -sH '' "$root$path/cpu.max" "$root$path/memory.max"
        done ;;
    *,cpu,*) for root in /sys/fs/cgroup/cpu "/sys/fs/cgroup/$controllers"; do
            grep -sH '' "$root$path/cpu.cfs_quota_us" "$root$path/cpu.cfs_period_us" && break
        done ;;
    *,memory,*) grep -sH '' "/sys/fs/cgroup/memory$path/memory.limit_in_bytes" ;;
    esac
done <"/proc/$1/cgroup"
true
"""
_NO_BOUND_BYTES = 2**62
"""Cgroup 1 shows as no bound of memory the largest whole number of pages."""


class _Bounds(TypedDict):
    """As the kernel has them; None where there is no bound, or nothing tells of it."""

    cpus: str | None
    cpu_time_cpus: float | None
    memory_bytes: int | None
    memory_nodes: str | None


class _Container(TypedDict):
    """As its engine says of it."""

    engine: str
    version: str | None
    runtime: str | None
    image: str
    image_id: str | None
    image_digest: str | None
    root: bool
    network: str
    cpus: str | None
    cpu_time_cpus: float | None
    memory_bytes: int | None
    memory_node: int | None
    in_force: _Bounds
    privileged: bool
    arguments: list[str]
    engine_arguments: list[str]
    adapted: list[str]


def _tell_container(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "container")
    if not found:
        return None
    bounds = part_of(found, "in_force")
    cpus, time, memory = bounds.get("cpus"), bounds.get("cpu_time_cpus"), bounds.get("memory_bytes")
    nodes = bounds.get("memory_nodes")
    return join_texts(
        join_texts(found.get("engine"), found.get("version"), found.get("runtime"), by=" "),
        join_texts(
            f"CPUs {cpus}" if cpus else None,
            f"CPU time of {time:g} CPUs" if time else None,
            f"memory {write('memory_bytes', memory)}" if memory else "no bound of memory" if bounds else None,
            f"of node {nodes}" if nodes and found.get("memory_node") is not None else None,
        ),
        by="; ",
    )


class Container(Fact):
    """As the engine's ``version`` and ``inspect`` say, with the bounds that were asked for and those in force."""

    kind = "container"
    shape = _Container | bool
    inside = True
    subjects = (Subject("Container", 85, _tell_container, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any] | bool:
        if not isinstance(host, ContainerHost):
            return False
        asked = host.options
        runtime, image, digest = parts_of(await host.inspect(_FORMATS[asked.engine]))
        return {
            "engine": asked.engine,
            "version": await host.engine_version(),
            "runtime": runtime,
            "image": asked.image,
            "image_id": image,
            "image_digest": digest,
            "root": asked.root,
            "network": host.network_words,
            "cpus": asked.cpus,
            "cpu_time_cpus": asked.cpu_time,
            "memory_bytes": asked.memory,
            "memory_node": asked.memory_node,
            "in_force": parse_bounds(await host.look_from_machine(_BOUNDS)),
            "privileged": asked.privileged,
            "arguments": list(asked.arguments),
            "engine_arguments": list(asked.engine_arguments),
            "adapted": [adaptation.why for adaptation in host.adaptations],
        }


def parse_bounds(text: str) -> dict[str, Any]:
    """Bounds of a container from its first process's status and the files of its cgroup, each ``PATH:VALUE``."""
    lines = (line.partition(":") for line in text.splitlines())
    values = {key.rpartition("/")[2]: value.strip() for key, _, value in lines}
    quota, period = (*values.get("cpu.max", "max 100000").split(), "")[:2]
    if "cpu.cfs_quota_us" in values:
        quota, period = values["cpu.cfs_quota_us"], values.get("cpu.cfs_period_us", "")
    memory = values.get("memory.max") or values.get("memory.limit_in_bytes") or ""
    return {
        "cpus": values.get("Cpus_allowed_list"),
        "cpu_time_cpus": int(quota) / int(period) if quota.isdigit() and period.isdigit() else None,
        "memory_bytes": int(memory) if memory.isdigit() and int(memory) < _NO_BOUND_BYTES else None,
        "memory_nodes": values.get("Mems_allowed_list"),
    }


def parts_of(text: str) -> tuple[str | None, str | None, str | None]:
    """Runtime, id and digest of the image, None where the engine leaves one empty."""
    parts = [part.strip() or None for part in text.strip().split("|")]
    runtime, image, digest = (*parts, None, None, None)[:3]
    return runtime, image, digest
