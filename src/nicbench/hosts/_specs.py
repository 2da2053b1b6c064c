"""Hosts from plain data: what a bench file says of them, and what undo.json keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.model.base import Frozen
from nicbench.registry import find


class HostChoice(Protocol):
    """A host in a bench file: its kind, that kind's options, and the name of the host that it is made on."""

    @property
    def kind(self) -> str: ...
    @property
    def options(self) -> Frozen: ...
    @property
    def on(self) -> str | None: ...


def hosts_of(choices: Mapping[str, HostChoice], there: Mapping[str, Host] | None = None) -> dict[str, Host]:
    """The hosts of a bench file by their names, in its order; nothing is touched. What one stands on is one of them.

    Those that are ``there`` already are taken as they are: virtual machines that run.
    """
    made: dict[str, Host] = dict(there or {})

    def make(name: str) -> Host:
        if name not in made:
            made[name] = from_spec(spec_of(choices, name), name, None if (on := choices[name].on) is None else make(on))
        return made[name]

    return {name: make(name) for name in choices}


def spec_of(choices: Mapping[str, HostChoice], name: str) -> dict[str, Any]:
    """What makes a host of a bench file again, with what it stands on (``Host.spec``)."""
    choice = choices[name]
    own = {"kind": choice.kind, **choice.options.model_dump(mode="json")}
    if find("nicbench.hosts", Host)[choice.kind].made_here:
        own["guest"] = name  # two that are made alike are two
    return own if choice.on is None else {**own, "inner": spec_of(choices, choice.on)}


def from_spec(spec: Mapping[str, Any], name: str | None = None, inner: Host | None = None) -> Host:
    """The inverse of ``Host.spec``. The ``inner`` of a wrapper may be missing: then it is this machine.

    Where the host that it wraps is there already, it is given.
    """
    kinds = find("nicbench.hosts", Host)
    kind = spec.get("kind")
    if kind not in kinds:
        raise UsageError(f"no host of kind {kind!r}", next_step=f"kinds: {', '.join(kinds)}")
    return kinds[kind].of_spec(spec, name, from_spec if inner is None else lambda _: inner)
