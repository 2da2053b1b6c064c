"""Parts of a configuration replaced, added and taken away; and when the link of a port was seen to change."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.engine.generator import ColumnTally, FlowColumns
from nicbench.otg import api
from nicbench.otg.model import NOT_IMPLEMENTED, OtgError
from nicbench.otg.transmission import Counting

CONFIG: dict[str, Any] = {
    "ports": [{"name": "p1"}],
    "flows": [{"name": "a", "rate": {"pps": 1}, "size": {"fixed": 64}}, {"name": "b", "rate": {"pps": 2}}],
}


def names(config: dict[str, Any]) -> list[str]:
    return [flow["name"] for flow in config["flows"]]


def test_only_the_named_properties_of_the_named_flows_are_replaced() -> None:
    new = {"name": "a", "rate": {"pps": 7}, "size": {"fixed": 128}}
    message = {"choice": "flows", "flows": {"property_names": ["rate"], "flows": [new]}}
    changed = api.update(CONFIG, message)
    assert changed["flows"][0] == {"name": "a", "rate": {"pps": 7}, "size": {"fixed": 64}}
    assert (changed["flows"][1], changed["ports"]) == (CONFIG["flows"][1], CONFIG["ports"])
    assert CONFIG["flows"][0]["rate"] == {"pps": 1}


def test_flows_are_added_behind_the_others_and_taken_away_by_name() -> None:
    parts = [{"choice": "flows", "flows": [{"name": "c"}]}, {"choice": "flows", "flows": [{"name": "d"}]}]
    assert names(api.append(CONFIG, {"config_append_list": parts})) == ["a", "b", "c", "d"]
    assert names(api.append({}, {"config_append_list": parts})) == ["c", "d"]
    gone = {"config_delete_list": [{"choice": "flows", "flows": ["a"]}]}
    assert names(api.delete(CONFIG, gone)) == ["b"]


def test_flows_that_nobody_knows_are_named() -> None:
    with pytest.raises(OtgError) as error:
        api.delete(CONFIG, {"config_delete_list": [{"flows": ["a", "x", "y"]}]})
    assert error.value.errors == [
        "config_delete.config_delete_list: flow 1: no flow of the configuration is called 'x'",
        "config_delete.config_delete_list: flow 2: no flow of the configuration is called 'y'",
    ]
    with pytest.raises(OtgError, match=r"config_update.flows.flows\[0\].name: no flow"):
        api.update(CONFIG, {"flows": {"property_names": ["rate"], "flows": [{"name": "x"}]}})
    with pytest.raises(OtgError, match=r"config_update.protocols") as refused:
        api.update(CONFIG, {"choice": "protocols"})
    assert refused.value.code == NOT_IMPLEMENTED


class Told:
    """An engine whose only port has its link up or down."""

    link_up: bool | None = True

    async def tally_columns(self) -> ColumnTally:
        counts = dict.fromkeys(("sent", "sent_bytes", "received", "received_bytes", "foreign", "stale"), 0)
        port = {"name": "left", **counts, "link_up": self.link_up, "counters": {}}
        columns: dict[str, Any] = {name: [] for name in FlowColumns.model_fields}
        return ColumnTally.model_validate({"at_ns": 1, "columns": columns, "ports": [port], "health": None})


async def test_a_link_is_known_to_have_changed_when_it_is_first_seen_otherwise() -> None:
    engine = Told()
    counting = Counting(engine)  # type: ignore[arg-type]  # it asks for nothing else
    assert counting.link_changed_ns("left") == 0
    await counting.count()
    first = counting.link_changed_ns("left")
    await counting.count()
    assert counting.link_changed_ns("left") == first > 0
    engine.link_up = False
    await counting.count()
    assert counting.link_changed_ns("left") > first
