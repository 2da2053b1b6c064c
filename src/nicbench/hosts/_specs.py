"""Hosts from plain data: what a bench file says of them, and what undo.json keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.registry import find


def from_spec(spec: Mapping[str, Any], name: str | None = None) -> Host:
    """The inverse of ``Host.spec``. The ``inner`` of a wrapper may be missing: then it is this machine."""
    kinds = find("nicbench.hosts", Host)
    kind = spec.get("kind")
    if kind not in kinds:
        raise UsageError(f"no host of kind {kind!r}", next_step=f"kinds: {', '.join(kinds)}")
    return kinds[kind].of_spec(spec, name, from_spec)
