"""Profiles: every step is a known item with valid options and a reason, and docs/tuning.md says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.registry import find
from nicbench.tuning.items.base import DeviceOptions, Item
from nicbench.tuning.tune import PROFILES, requests_of

DOCS = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()


@pytest.mark.parametrize("profile", PROFILES)
def test_every_step_is_an_item_with_valid_options_and_a_reason(profile: str) -> None:
    wishes = requests_of(profile, "all")
    assert [wish.item.kind for wish in wishes] == [step.item for step in PROFILES[profile]]
    assert {wish.source for wish in wishes} == {f"profile {profile}"}
    assert len({step.item for step in PROFILES[profile]}) == len(PROFILES[profile])
    for step in PROFILES[profile]:
        assert step.why in DOCS, f"docs/tuning.md does not say of {step.item}: {step.why}"


def test_every_item_and_each_of_its_options_is_documented() -> None:
    for kind, item in find("nicbench.tuning.items", Item).items():
        lines = [line for line in DOCS.splitlines() if line.startswith(f"| `{kind}`")]
        assert len(lines) == 1, f"docs/tuning.md has no row of {kind}"
        shared = {*DeviceOptions.model_fields, "required", item.alone}
        for option in set(item.Options.model_fields) - shared:
            assert f"`{option}`" in lines[0], f"docs/tuning.md does not name the option {option} of {kind}"


def test_items_of_interfaces_take_devices() -> None:
    for kind, item in find("nicbench.tuning.items", Item).items():
        assert issubclass(item.Options, DeviceOptions) == (item.scope == "device"), kind
        assert item.alone is None or item.alone in item.Options.model_fields
