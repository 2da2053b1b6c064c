"""The host inside which a wrapper works, as a bench file writes it: ``inner: {kind: netns, namespace: router}``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, ValidationInfo

from nicbench.hosts.base import Host
from nicbench.registry import find


def _section(value: Any, information: ValidationInfo) -> dict[str, Any]:
    """The section with the defaults of its kind filled in; ValueError says what is wrong with it."""
    section = {"kind": value} if isinstance(value, str) else value
    kinds = find("nicbench.hosts", Host)
    if not isinstance(section, dict) or section.get("kind") not in kinds:
        raise ValueError(f"it must be a host: its kind is one of {', '.join(kinds)}")
    given = {key: each for key, each in section.items() if key != "kind"}
    try:
        options = kinds[section["kind"]].Options.model_validate(given, context=information.context)
    except ValidationError as error:
        first = error.errors()[0]
        where = ", ".join(map(str, first["loc"]))
        raise ValueError(f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}") from error
    return {"kind": section["kind"], **options.model_dump()}


Inner = Annotated[dict[str, Any], BeforeValidator(_section)]
"""A host's section: ``kind`` and the options of that kind."""
