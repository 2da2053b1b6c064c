"""Profiles: every step is a known item with valid options and a reason, and docs/tuning.md has them all."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nicbench.core.registry import find
from nicbench.tuning.items.base import DeviceOptions, Item
from nicbench.tuning.tune import PROFILES, requests_of

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))
from nicbench_docs.program import item_rows, step_rows  # noqa: E402

TABLES = (ROOT / "docs/tables/tuning.markdown").read_text()


@pytest.mark.parametrize("profile", PROFILES)
def test_every_step_is_an_item_with_valid_options_and_a_reason(profile: str) -> None:
    wishes = requests_of(profile, "all")
    assert [wish.item.kind for wish in wishes] == [step.item for step in PROFILES[profile]]
    assert {wish.source for wish in wishes} == {f"profile {profile}"}
    assert len({step.item for step in PROFILES[profile]}) == len(PROFILES[profile])
    assert f"<!-- profile {profile} -->" in TABLES
    rows = list(step_rows(profile))
    assert [why for _, why in rows] == [step.why for step in PROFILES[profile]]
    for (cell, why), step in zip(rows, PROFILES[profile], strict=True):
        assert step.item in cell
        assert why


def test_every_item_and_each_of_its_options_is_documented() -> None:
    assert "<!-- items -->" in TABLES
    rows = {kind.strip("`"): (meaning, options) for kind, _, meaning, options in item_rows()}
    for kind, item in find("nicbench.tuning.items", Item).items():
        meaning, options = rows.pop(kind)
        assert re.match(r"[A-Z].* .*", meaning), f"the class of {kind} does not say what it is"
        for option in set(item.Options.model_fields) - set(DeviceOptions.model_fields):
            assert f"`{option}`: " in options, f"the row of {kind} does not name its option {option}"
    assert not rows


def test_items_of_interfaces_take_devices() -> None:
    for kind, item in find("nicbench.tuning.items", Item).items():
        assert issubclass(item.Options, DeviceOptions) == (item.scope == "device"), kind
        assert item.alone is None or item.alone in item.Options.model_fields
