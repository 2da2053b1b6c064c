"""The parameters of a result as the beginning of a sentence: "with 64-byte frames at 50 % of the PDR"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from nicbench.core.frame_size import label_of
from nicbench.core.units import format_digits

_TOLD: Final = frozenset({"part", "run", "frame_bytes", "mix", "size", "load_percent", "load_of"})
"""Parameters that are worded separately, or that only tell results of several kinds apart."""


def describe_circumstances(parameters: Mapping[str, Any]) -> str:
    """Describes the circumstances in the order frames, load, the rest by name; "" where there are none."""
    said = [text for text in (_describe_frames(parameters), _describe_load(parameters)) if text]
    rest = [_words_of(name, value) for name, value in parameters.items() if name not in _TOLD and value is not None]
    return ", ".join((*([" ".join(said)] if said else []), *rest))


def _describe_frames(parameters: Mapping[str, Any]) -> str:
    label = label_of(dict(parameters))
    if label is None:
        return ""
    return f"with {label}-byte frames" if label.replace(".", "").isdigit() else f"with {label} frames"


def _describe_load(parameters: Mapping[str, Any]) -> str:
    percent, of = parameters.get("load_percent"), parameters.get("load_of")
    if not isinstance(percent, int | float):
        return ""
    article = "" if str(of)[:1].isdigit() else "the "
    return f"at {percent:g} % of {article}{of}" if of else f"at a load of {percent:g} %"


def _words_of(name: str, value: Any) -> str:
    if name == "mode":
        return str(value)
    if name == "ports":
        return f"{value} {'port' if value == 1 else 'ports'}"
    words = name.removesuffix("_percent").replace("_", " ")
    told = format_digits(value, 6) if isinstance(value, float) else _text_of(value)
    return f"{words} {told}{' %' if name.endswith('_percent') else ''}"


def _text_of(value: Any) -> str:
    """Returns a value as text: lists and mappings, which only results of others have, as JSON."""
    return str(value) if isinstance(value, str | int) else json.dumps(value, default=str)
