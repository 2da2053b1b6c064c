"""What a run says of how it was made: by place ("" is the run itself, others are machines), as trees of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nicbench.model.turn import DEFAULT
from nicbench.store.folder import RunFolder

_REASONS: Final = "reasons_null"
_STATES: Final = ("during", "asked")
"""Of a setting that was tuned: what it read during the test, or what was asked for where nobody read it."""


def told(folder: RunFolder, configuration: str | None = None) -> dict[str, dict[str, Any]]:
    """Bench file as resolved, tuning, inventory, map of cores and versions.

    Of a run that compares configurations each is a place of its own; with ``configuration`` that one alone is told, as
    the run itself.
    """
    plan = folder.plan()
    found: dict[str, dict[str, Any]] = {"": {}}
    for each in plan.each if plan is not None else ():
        if configuration is not None and plan is not None and plan.compared and each.configuration != configuration:
            continue
        place = each.configuration if plan is not None and plan.compared and configuration is None else ""
        content = each.model_dump(mode="json")
        found.setdefault(place, {}).update(
            {
                **{name: content[name] for name in ("lab", "dut", "cores", "traffic", "addressing", "tester", "seed")},
                "dut": {**content["dut"], "disclosure": content["dut_disclosure"]},
                "tests": {test["name"]: {**test["options"], "method": test["method"]} for test in content["tests"]},
                "thresholds": {row["name"]: row["value"] for row in content["thresholds"]},
                "declared": content["declared"],
                "testbed": content["facts"],
                "plan": {"command": content["command"]},
                "software": {"nicbench": content["nicbench_version"]},
            }
        )
    inventory = folder.read_json("inventory.json")
    for host, facts in inventory.items() if isinstance(inventory, Mapping) else ():
        found.setdefault(host, {})["inventory"] = _without_reasons(facts)
    for host, settings in _tuned(folder, configuration).items():
        found.setdefault(host, {})["tuning"] = settings
    return found


def by_name(value: Any) -> dict[str, Any] | None:
    """A list of things with names, by name; one without, by number: the second entry of both is then compared."""
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        return None
    return {str(item.get("name", number)): item for number, item in enumerate(value, 1)}


def _without_reasons(facts: Any) -> Any:
    """Why a fact is unknown says nothing that the fact does not say."""
    if isinstance(facts, Mapping):
        return {name: _without_reasons(value) for name, value in facts.items() if name != _REASONS}
    return [_without_reasons(value) for value in facts] if isinstance(facts, list) else facts


def _tuned(folder: RunFolder, only: str | None) -> dict[str, dict[str, Any]]:
    """Settings of tuning.json by machine, item and interface, with what each came to."""
    content = folder.read_json("tuning.json")
    rows = content.get("settings", []) if isinstance(content, Mapping) else []
    found: dict[str, dict[str, Any]] = {}
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, Mapping) or "item" not in row:
            continue
        configuration = row.get("configuration") or DEFAULT
        host = str(row.get("host") or "")
        if configuration not in (DEFAULT, only):
            if only is not None:
                continue
            host = f"{host}, {configuration}"
        state = next((row[name] for name in _STATES if row.get(name) is not None), None)
        item = found.setdefault(host, {}).setdefault(str(row["item"]), {})
        item[str(row.get("device") or "machine")] = state if state is not None else row.get("outcome")
    return found
