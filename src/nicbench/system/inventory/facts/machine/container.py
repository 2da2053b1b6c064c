"""The container that a host is: engine, runtime, image, what it may use. False where it is none."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.system.inventory.base import Fact

_FORMATS = {
    "podman": "{{.OCIRuntime}}|{{.Image}}|{{.ImageDigest}}",
    "docker": "{{.HostConfig.Runtime}}|{{.Image}}|",
}


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
    memory_bytes: int | None
    privileged: bool
    arguments: list[str]
    engine_arguments: list[str]
    adapted: list[str]


class Container(Fact):
    """As the engine's ``version`` and ``inspect`` say, beside what was asked for."""

    kind = "container"
    shape = _Container | bool
    inside = True

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
            "memory_bytes": asked.memory,
            "privileged": asked.privileged,
            "arguments": list(asked.arguments),
            "engine_arguments": list(asked.engine_arguments),
            "adapted": [adaptation.why for adaptation in host.adaptations],
        }


def parts_of(text: str) -> tuple[str | None, str | None, str | None]:
    """Runtime, id and digest of the image, None where the engine leaves one empty."""
    parts = [part.strip() or None for part in text.strip().split("|")]
    runtime, image, digest = (*parts, None, None, None)[:3]
    return runtime, image, digest
