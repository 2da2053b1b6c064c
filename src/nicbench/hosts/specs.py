"""Hosts from plain data: what a bench file says of them, and what undo.json keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.local import LocalHost
from nicbench.hosts.netns import NetnsHost


def from_spec(spec: Mapping[str, Any], name: str | None = None) -> Host:
    """The inverse of ``Host.spec``. A wrapper's ``inner`` may be missing: then it is this machine."""
    kind = spec.get("kind")
    if kind == LocalHost.kind:
        return LocalHost(name or LocalHost.kind)
    if kind == NetnsHost.kind:
        return NetnsHost.of_spec(spec, from_spec(spec.get("inner", {"kind": LocalHost.kind})), name)
    raise UsageError(f"no host of kind {kind!r}", next_step=f"kinds: {LocalHost.kind}, {NetnsHost.kind}")
