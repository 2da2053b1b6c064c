"""Changes of a configuration, as a new whole one: flows with another rate or size, more flows, or fewer. Pure.

A message has been checked against the model before; whether the new configuration is right is checked after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicbench.otg.refusals import NOT_IMPLEMENTED, OtgError, Problems

Config = Mapping[str, Any]


def update(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with rates or sizes of flows replaced (OTG ``config_update``). OtgError."""
    if message.get("choice", "flows") != "flows":
        raise OtgError(["config_update.protocols: protocols are not emulated"], code=NOT_IMPLEMENTED)
    given = message.get("flows") or {}
    new = {str(flow.get("name")): flow for flow in given.get("flows") or ()}
    _require_known(config, list(new), "config_update.flows.flows[{index}].name")
    keys = given.get("property_names") or ()
    flows = [
        {**flow, **{key: new[flow["name"]][key] for key in keys if key in new[flow["name"]]}}
        if flow["name"] in new
        else flow
        for flow in _flows(config)
    ]
    return {**config, "flows": flows}


def append(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with more flows, behind those that it has (OTG ``config_append``)."""
    added = [flow for part in message.get("config_append_list") or () for flow in part.get("flows") or ()]
    return {**config, "flows": [*_flows(config), *added]}


def delete(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration without the flows of these names (OTG ``config_delete``). OtgError for unknown ones."""
    names = [str(name) for part in message.get("config_delete_list") or () for name in part.get("flows") or ()]
    _require_known(config, names, "config_delete.config_delete_list: flow {index}")
    gone = set(names)
    return {**config, "flows": [flow for flow in _flows(config) if flow["name"] not in gone]}


def _flows(config: Config) -> Sequence[Mapping[str, Any]]:
    return config.get("flows") or ()


def _require_known(config: Config, names: Sequence[str], path: str) -> None:
    known = {str(flow.get("name")) for flow in _flows(config)}
    problems = Problems()
    for index, name in enumerate(names):
        if name not in known:
            problems.invalid(path.format(index=index), f"no flow of the configuration is called {name[:80]!r}")
    problems.raise_any()
