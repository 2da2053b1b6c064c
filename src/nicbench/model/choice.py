"""A choice among plug-ins: ``KEY: iperf3``, or ``KEY: {kind: iperf3, ...}`` with options that its plug-in knows."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, model_validator

from nicbench.model.base import Frozen


class Choice(Frozen):
    """A kind, and options of its own as plain data."""

    model_config = ConfigDict(extra="allow")

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        """All but the kind."""
        return dict(self.model_extra or {})
