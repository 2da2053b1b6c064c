"""Makes hosts from plain data: from the hosts of a bench file, and from the specs in undo.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.hosts.base import Host


class HostChoice(Protocol):
    """A host in a bench file: its kind, that kind's options, and the name of the host that it is made on."""

    @property
    def kind(self) -> str: ...
    @property
    def options(self) -> Frozen: ...
    @property
    def on(self) -> str | None: ...


def build_hosts(choices: Mapping[str, HostChoice], there: Mapping[str, Host] | None = None) -> dict[str, Host]:
    """Makes the hosts of a bench file, by name and in its order, without touching any machine.

    A wrapper gets the host that it stands on (``on``) from the same bench file. Hosts in ``there`` exist already
    (running virtual machines) and are used as they are.
    """
    made: dict[str, Host] = dict(there or {})

    def make(name: str) -> Host:
        if name not in made:
            made[name] = host_from_spec(
                spec_of(choices, name), name, None if (on := choices[name].on) is None else make(on)
            )
        return made[name]

    return {name: make(name) for name in choices}


def spec_of(choices: Mapping[str, HostChoice], name: str) -> dict[str, Any]:
    """Returns the spec (see ``Host.spec``) of a host of a bench file, with that of the host that it stands on."""
    choice = choices[name]
    own = {"kind": choice.kind, **choice.options.model_dump(mode="json")}
    if find("nicbench.hosts.kinds", Host)[choice.kind].made_here:
        own["guest"] = name  # two guests with the same options are still two hosts
    return own if choice.on is None else {**own, "inner": spec_of(choices, choice.on)}


def host_from_spec(spec: Mapping[str, Any], name: str | None = None, inner: Host | None = None) -> Host:
    """Makes a host from what ``Host.spec`` returned. A wrapper whose spec has no ``inner`` wraps this machine.

    ``inner`` is the wrapped host where it exists already; it then takes the place of the one in the spec.
    """
    kinds = find("nicbench.hosts.kinds", Host)
    kind = spec.get("kind")
    if kind not in kinds:
        raise UsageError(f"no host of kind {kind!r}", next_step=f"kinds: {', '.join(kinds)}")
    return kinds[kind].of_spec(spec, name, host_from_spec if inner is None else lambda _: inner)
