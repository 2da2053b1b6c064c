"""Rules that send flows to queues: placed, read back as ethtool prints them, and taken away."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.headers.flow_rules import FlowRule
from nicbench.core.queues import ReceiveHash
from nicbench.core.registry import find
from nicbench.core.traffic import StreamSpec
from nicbench.core.tuning import Outcome
from nicbench.measure.queues import queues_of_flows
from nicbench.system.adapters.ethtool import parse_flow_rules
from nicbench.testbed.duts.base import Addressing
from nicbench.tuning.items.base import Item
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

from ._card import golden

DEVICE = "ens1f0"
_TYPES = {"udp4": "UDP over IPv4", "tcp4": "TCP over IPv4", "udp6": "UDP over IPv6"}
OTHERS = """Filter: 2045
\tRule Type: Raw Ethernet
\tSrc MAC addr: 00:00:00:00:00:00 mask: FF:FF:FF:FF:FF:FF
\tDest MAC addr: 00:00:00:00:00:00 mask: FF:FF:FF:FF:FF:FF
\tEthertype: 0x88F7 mask: 0x0
\tAction: Direct to queue 1

"""
ELEPHANT = {"flow": "udp4", "source_port": 60_000, "queue": 3}


class RuleCard(FakeHost):
    """An adapter with rules for flows, which prints them as ethtool 6.1 does (rxclass.c)."""

    def __init__(self, *, switch: str = "off", queues: int = 4) -> None:
        super().__init__("dut", {})
        self.switch, self.places = switch, dict[int, FlowRule]()
        self.answer(("ethtool", "-k", DEVICE), lambda _: f"Features for {DEVICE}:\nntuple-filters: {self.switch}\n")
        limits = golden("mlx5/l.txt")
        assert "Combined:" in limits
        most, mark, now = limits.partition("Current hardware settings:")
        shown = most + mark + "\n".join(
            f"Combined:\t{queues}" if row.startswith("Combined") else row for row in now.splitlines()
        )  # fmt: skip
        self.answer(("ethtool", "-l", DEVICE), shown)
        self.answer(("ethtool", "-n", DEVICE), lambda _: self.listed())
        self.answer("ethtool -K", self._switch)
        self.answer("ethtool -N", self._change)

    def listed(self) -> str:
        rules = "".join(_printed(place, rule) for place, rule in self.places.items())
        return f"4 RX rings available\nTotal {1 + len(self.places)} rules\n\n{OTHERS}{rules}"

    def _switch(self, command: tuple[str, ...]) -> str:
        assert command[3] == "ntuple"
        self.switch = command[4]
        if self.switch == "off":
            self.places.clear()
        return ""

    def _change(self, command: tuple[str, ...]) -> str:
        assert self.switch == "on"
        if command[3] == "delete":
            del self.places[int(command[4])]
            return ""
        place = 2000 + len(self.places)
        self.places[place] = FlowRule.of_words(" ".join(command[3:]))
        return f"Added rule with ID {place}\n"


def _printed(place: int, rule: FlowRule) -> str:
    six = rule.flow.endswith("6")
    none, every = ("::", str(ipaddress.IPv6Address(2**128 - 1))) if six else ("0.0.0.0", "255.255.255.255")
    addresses = [
        f"\t{name} IP addr: {value or none} mask: {none if value else every}\n"
        for name, value in (("Src", rule.source_address), ("Dest", rule.destination_address))
    ]
    ports = [
        f"\t{name} port: {value or 0} mask: {'0xffff' if value is None else '0x0'}\n"
        for name, value in (("Src", rule.source_port), ("Dest", rule.destination_port))
    ]
    service = "\tTraffic Class: 0x0 mask: 0xff\n" if six else "\tTOS: 0x0 mask: 0xff\n"
    action = "Drop" if rule.queue is None else f"Direct to queue {rule.queue}"
    lines = (f"Filter: {place}\n\tRule Type: {_TYPES[rule.flow]}\n", *addresses, service, *ports)
    return "".join(lines) + f"\tAction: {action}\n\n"


def asked(host: FakeHost, *rules: dict[str, Any]) -> tuple[PlacedRequest, ...]:
    item = find("nicbench.tuning.items", Item)["flow_rules"]
    request = TuningRequest("dut", item, item.Options.model_validate({"rules": rules}))
    return place_requests([request], [Part("dut", host, (DEVICE,))])


@pytest.mark.parametrize("switch", ["off", "on"])
async def test_rules_are_placed_read_back_and_taken_away_with_the_switch(tmp_path: Path, switch: str) -> None:
    card = RuleCard(switch=switch)
    rules = (
        ELEPHANT,
        {"flow": "udp6", "destination_address": "2001:2::1", "queue": 0},
        {"flow": "tcp4", "source_address": "198.18.0.2", "destination_port": 80, "queue": None},
    )
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, asked(card, *rules))
    assert row.outcome is Outcome.CHANGED
    command = f"ethtool -N {DEVICE} flow-type udp4 src-port 60000 action 3"
    assert command in [" ".join(each) for each in card.commands]
    placed = [each.rule for each in parse_flow_rules(card.listed())]
    assert {rule.words for rule in placed if rule is not None} == {
        FlowRule.model_validate(each).words for each in rules
    }
    assert await stack.undo_all() == []
    assert (card.places, card.switch) == ({}, switch)


async def test_a_rule_of_somebody_else_stays(tmp_path: Path) -> None:
    card = RuleCard(switch="on")
    theirs = FlowRule(flow="udp4", source_port=5000, queue=1)
    card.places[7] = theirs
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, asked(card, ELEPHANT))
    assert len(card.places) == 2
    assert await stack.undo_all() == []
    assert card.places == {7: theirs}
    with pytest.raises(NotReadyError, match="of others is for the same frames"):
        await tune(stack, asked(card, {"flow": "udp4", "source_port": 5000, "queue": 2}))


@pytest.mark.parametrize(
    ("card", "why"),
    [(RuleCard(switch="off [fixed]"), "takes no rules for flows"), (RuleCard(queues=2), "there are 2 receive queues")],
    ids=["no rules", "too few queues"],
)
async def test_what_the_adapter_cannot_do_is_said(tmp_path: Path, card: RuleCard, why: str) -> None:
    with pytest.raises(NotReadyError, match=why):
        await tune(UndoStack("run", None, tmp_path), asked(card, ELEPHANT))
    assert not card.places


@pytest.mark.parametrize(
    "rules",
    [
        [{"flow": "udp4", "queue": 1}],
        [{"flow": "udp4", "source_address": "2001:2::1", "queue": 1}],
        [{"flow": "udp4", "source_address": "198.18.0", "queue": 1}],
        [ELEPHANT, {**ELEPHANT, "queue": 1}],
    ],
    ids=["for everything", "another version", "no address", "twice"],
)
def test_rules_that_mean_nothing_are_refused(rules: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        asked(RuleCard(), *rules)


def test_a_list_that_ends_early_is_not_understood() -> None:
    with pytest.raises(ValueError, match="announced"):
        parse_flow_rules("4 RX rings available\nTotal 2 rules\n\n" + OTHERS)


def test_a_rule_comes_before_the_hash() -> None:
    known = ReceiveHash(
        function="toeplitz", key=":".join(["6d"] * 40), table=(0, 1), fields="sdfn",
        rules=(FlowRule.model_validate(ELEPHANT), FlowRule(flow="tcp4", source_port=60_000, queue=5)),
    )  # fmt: skip
    way = Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, "198.18.0.2", "198.19.0.2")
    stream = StreamSpec(name="elephant", share=1.0, flows=1, source_port=60_000)
    assert list(queues_of_flows(known, stream, way)) == [3]
