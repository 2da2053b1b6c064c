"""Makes the JSON Schema of summary.json, and lists the members of a document with a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nicbench.core.result import Summary
from nicbench.store.files import json_text


def summary_schema_text() -> str:
    """Returns the content of docs/summary.schema.json, generated from the model ``Summary``."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from nicbench.core.result.Summary by scripts/tables.",
        **Summary.model_json_schema(mode="serialization"),
    }
    return json_text(schema, indent=2) + "\n"


def rows_of(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields each member by its path (``results[].values``), with its type and its description."""
    yield from _members(schema, schema.get("$defs", {}), "", ())


def _members(
    part: dict[str, Any], parts: dict[str, Any], path: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    for name, member in part.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield f"`{place}`", _type(member), " ".join(str(member.get("description") or "").replace("``", "`").split())
        for reference, suffix in _references(member):
            if reference not in above:
                yield from _members(parts[reference], parts, f"{place}{suffix}", (*above, reference))


def _references(member: dict[str, Any], suffix: str = "") -> Iterator[tuple[str, str]]:
    """The parts that a member holds: directly, in a list (``[]``) or by name (``.NAME``)."""
    if "$ref" in member:
        yield str(member["$ref"]).rpartition("/")[2], suffix
    for each in (*member.get("anyOf", ()), *member.get("oneOf", ()), *member.get("allOf", ())):
        yield from _references(each, suffix)
    if isinstance(member.get("items"), dict):
        yield from _references(member["items"], f"{suffix}[]")
    if isinstance(member.get("additionalProperties"), dict):
        yield from _references(member["additionalProperties"], f"{suffix}.NAME")


def _type(member: dict[str, Any]) -> str:
    if "const" in member:
        return f"`{member['const']}`"
    if "enum" in member:
        return ", ".join(f"`{value}`" for value in member["enum"])
    several = member.get("anyOf") or member.get("oneOf")
    if several:
        return " or ".join(dict.fromkeys(_type(each) for each in several))
    kind = member.get("type", "object" if "$ref" in member else "any")
    if kind == "array" and isinstance(member.get("items"), dict):
        return f"list of {_type(member['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
