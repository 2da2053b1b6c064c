"""What a bench file may say of a container."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nicbench.hosts._inner import Inner
from nicbench.model.base import Frozen
from nicbench.model.cpu_list import cpu_list, parse_cpu_list
from nicbench.model.quantity import Bytes

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]{0,254}")
_NETWORK = re.compile(r"host|none|ns:/[^\s,]+")
# A container is found, watched and ended by nicbench: these would take it out of its hands.
_OURS = ("--pid", "--name", "--rm", "-d", "--detach", "--restart", "--entrypoint", "-i", "--interactive", "-t", "--tty")
_SMALLEST_MEMORY_BYTES = 16 * 1024 * 1024


def _image(text: str) -> str:
    if not _IMAGE.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an image: write it as the engine's `images` shows it")
    return text


def _folder(text: str) -> str:
    if not text.startswith("/") or ":" in text or not text.isprintable():
        raise ValueError(f"{text!r} is no folder of a root file system: write an absolute path without a colon")
    return text


def _network(text: str) -> str:
    if not _NETWORK.fullmatch(text):
        raise ValueError(f"{text!r} is no network: write `host`, `none`, or `ns:/run/netns/NAME`")
    return text


def _number_as_text(value: Any) -> Any:
    """``cpus: 3`` is a number in YAML."""
    return str(value) if type(value) is int else value


def _cpus(text: str) -> str:
    try:
        cpus = parse_cpu_list(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no list of CPUs: write it like `0-3,6`") from error
    if not cpus:
        raise ValueError("it names no CPU: write it like `0-3,6`, or leave it out")
    return cpu_list(cpus)


def _arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    for argument in arguments:
        if argument.partition("=")[0] in _OURS:
            raise ValueError(f"{argument!r} is given by nicbench, which starts, watches and ends the container")
    return arguments


class ContainerOptions(Frozen):
    """``hosts: {dut: {kind: container, image: debian, cpus: 0-3, memory: 2 GiB}}``."""

    engine: Literal["podman", "docker"] = "podman"
    image: Annotated[str, AfterValidator(_image)] | None = None
    root: Annotated[str, AfterValidator(_folder)] | None = None
    network: Annotated[str, AfterValidator(_network)] = "host"
    cpus: Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_cpus)] | None = None
    memory: Annotated[Bytes, Field(ge=_SMALLEST_MEMORY_BYTES)] | None = None
    memory_node: Annotated[int, Field(ge=0, le=1023)] | None = None
    folders: tuple[Annotated[str, AfterValidator(_folder)], ...] = ()
    privileged: bool = False
    arguments: Annotated[tuple[str, ...], AfterValidator(_arguments)] = ()
    engine_arguments: tuple[str, ...] = ()
    inner: Inner = Field(default_factory=lambda: {"kind": "local"})

    @model_validator(mode="after")
    def _one_file_system(self) -> ContainerOptions:
        if (self.image is None) == (self.root is None):
            raise ValueError("a container has either an `image` or a `root`: give one of them")
        if self.engine == "docker" and self.root is not None:
            raise ValueError("docker cannot run a root file system: use `engine: podman`, or an `image`")
        if self.engine == "docker" and self.network.startswith("ns:"):
            raise ValueError("docker cannot join a namespace by its path: use `engine: podman`, or `network: host`")
        return self
