"""The receiver's part of a reading: a pure translation; older engines leave parts of it out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from nicbench.model.analysis import (
    Arrivals,
    Capture,
    FlowGroup,
    FlowReport,
    Flows,
    Intervals,
    Reordering,
    Variation,
)

RAW = "raw"
"""The folder, in the run folder, of files that the engine writes."""


def received(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ``StreamReading``."""
    reordering, variation, intervals = raw.get("reordering"), raw.get("variation"), raw.get("intervals")
    return {
        "checked_bytes": raw.get("checked_bytes"),
        "reordering": Reordering(**_known(Reordering, reordering)) if reordering else None,
        "variation": Variation(**_known(Variation, variation)) if variation else None,
        "intervals": Intervals(**_known(Intervals, intervals)) if intervals else None,
        "arrivals": Arrivals(**_known(Arrivals, raw["arrivals"])) if raw.get("arrivals") else None,
        "last_jump_ns": raw.get("last_jump_ns"),
        "groups": tuple(FlowGroup(**_known(FlowGroup, group)) for group in raw.get("groups") or ()),
        "flows": Flows(**_known(Flows, raw["flows"])) if raw.get("flows") else None,
    }


def recorded(drain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ``Reading``: the files, by their names in the run folder."""
    capture, flows = drain.get("capture"), drain.get("flow_report")
    return {
        "capture": Capture(name=_name(capture), **_known(Capture, capture)) if capture else None,
        "flow_report": FlowReport(name=_name(flows), **_known(FlowReport, flows)) if flows else None,
    }


def _known(kind: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a newer engine tells beyond."""
    return {name: raw[name] for name in kind.model_fields if name in raw}


def _name(raw: Mapping[str, Any]) -> str:
    return f"{RAW}/{PurePosixPath(raw['path']).name}"
