"""The speed of a link set and undone: what it advertises afterwards is exactly what it advertised before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.tuning.items.link import Link, LinkOptions
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

from ._card import DEVICE, Card, refusing

SETTINGS = f"ethtool {DEVICE}"


def asked(card: Card, **options: Any) -> tuple[PlacedRequest, ...]:
    request = TuningRequest("dut", Link, LinkOptions.model_validate(options))
    return place_requests([request], [Part("dut", card, (DEVICE,))])


def last_words(card: Card) -> str:
    """Of the last ``ethtool -s``, behind the interface."""
    return [" ".join(words[3:]) for words in card.commands if words[:2] == ("ethtool", "-s")][-1]


ONE_OF_SEVEN_MODES = (
    "1000baseKX/Full off 10000baseKR/Full off 40000baseCR4/Full off 25000baseCR/Full off 50000baseKR2/Full off "
    "100000baseSR4/Full off 100000baseCR4/Full on"
)


@pytest.mark.parametrize("options", [{"speed": 25e9}, {"speed": 25e9, "autonegotiation": False}])
async def test_a_link_that_negotiated_advertises_exactly_the_same_modes_again(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    card = Card()
    before = card.texts[SETTINGS]
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, **options))
    assert card.texts[SETTINGS] != before
    assert await stack.undo_all() == []
    assert last_words(card) == f"autoneg on advertise {ONE_OF_SEVEN_MODES}"
    assert card.texts[SETTINGS] == before


async def test_where_all_modes_were_advertised_it_is_enough_that_the_link_negotiates(tmp_path: Path) -> None:
    card = Card()
    await card.run(("ethtool", "-s", DEVICE, "autoneg", "on"))
    before = card.texts[SETTINGS]
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, speed=25e9, autonegotiation=False))
    assert await stack.undo_all() == []
    assert last_words(card) == "autoneg on"
    assert card.texts[SETTINGS] == before


async def test_an_old_ethtool_has_the_link_negotiate_and_the_undo_says_which_modes_differ(tmp_path: Path) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, speed=25e9))
    refusing(card, f"ethtool -s {DEVICE} autoneg on advertise", "ethtool: bad command line argument(s)")
    (trouble,) = await stack.undo_all()
    assert "link should be advertised_modes" in trouble
    assert "Speed: 100000Mb/s" in card.texts[SETTINGS]


async def test_a_speed_that_was_refused_leaves_the_advertised_modes_as_they_were(tmp_path: Path) -> None:
    card = Card()
    before = card.texts[SETTINGS]

    def advertise_alone(_command: tuple[str, ...]) -> str:
        modes = r"(?<=Advertised link modes:  )100000baseCR4/Full"
        card.texts[SETTINGS] = re.sub(modes, "25000baseCR/Full", before)
        return ""

    card.answer(f"ethtool -s {DEVICE} speed", advertise_alone)
    with pytest.raises(NotReadyError, match="asked for speed_bits_per_s 25000000000, got"):
        await tune(UndoStack("run", None, tmp_path), asked(card, speed=25e9))
    assert card.texts[SETTINGS] == before
