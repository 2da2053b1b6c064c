"""Items of adapters with more than a switch: link, flow rules, congestion of RDMA."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost
from tests.tuning.items._card import ADDRESS, DEVICE, Card, golden, refusing
from tests.tuning.items.test_adapter_items import asked, tuned

from nicbench.core.errors import NotReadyError
from nicbench.core.headers import FlowRule
from nicbench.core.machine import ReceiveHash
from nicbench.core.plan import Outcome
from nicbench.core.registry import find
from nicbench.core.traffic import StreamSpec
from nicbench.measure.queues import queues_of_flows
from nicbench.system.adapters.ethtool import parse_flow_rules
from nicbench.testbed.duts.base import Addressing
from nicbench.tuning.items.base import Item
from nicbench.tuning.items.link import Link, LinkOptions
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

# The speed of a link set and undone: what it advertises afterwards is exactly what it advertised before.

SETTINGS = f"ethtool {DEVICE}"


def link_asked(card: Card, **options: Any) -> tuple[PlacedRequest, ...]:
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
    await tune(stack, link_asked(card, **options))
    assert card.texts[SETTINGS] != before
    assert await stack.undo_all() == []
    assert last_words(card) == f"autoneg on advertise {ONE_OF_SEVEN_MODES}"
    assert card.texts[SETTINGS] == before


async def test_where_all_modes_were_advertised_it_is_enough_that_the_link_negotiates(tmp_path: Path) -> None:
    card = Card()
    await card.run(("ethtool", "-s", DEVICE, "autoneg", "on"))
    before = card.texts[SETTINGS]
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, link_asked(card, speed=25e9, autonegotiation=False))
    assert await stack.undo_all() == []
    assert last_words(card) == "autoneg on"
    assert card.texts[SETTINGS] == before


async def test_an_old_ethtool_has_the_link_negotiate_and_the_undo_says_which_modes_differ(tmp_path: Path) -> None:
    card = Card()
    stack = UndoStack("run", None, tmp_path)
    await tune(stack, link_asked(card, speed=25e9))
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
        await tune(UndoStack("run", None, tmp_path), link_asked(card, speed=25e9))
    assert card.texts[SETTINGS] == before


# Rules that send flows to queues: placed, read back as ethtool prints them, and taken away.

RULES_DEVICE = "ens1f0"
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
        self.answer(
            ("ethtool", "-k", RULES_DEVICE), lambda _: f"Features for {RULES_DEVICE}:\nntuple-filters: {self.switch}\n"
        )
        limits = golden("mlx5/l.txt")
        assert "Combined:" in limits
        most, mark, now = limits.partition("Current hardware settings:")
        shown = most + mark + "\n".join(
            f"Combined:\t{queues}" if row.startswith("Combined") else row for row in now.splitlines()
        )  # fmt: skip
        self.answer(("ethtool", "-l", RULES_DEVICE), shown)
        self.answer(("ethtool", "-n", RULES_DEVICE), lambda _: self.listed())
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


def flow_rules_asked(host: FakeHost, *rules: dict[str, Any]) -> tuple[PlacedRequest, ...]:
    item = find("nicbench.tuning.items", Item)["flow_rules"]
    request = TuningRequest("dut", item, item.Options.model_validate({"rules": rules}))
    return place_requests([request], [Part("dut", host, (RULES_DEVICE,))])


@pytest.mark.parametrize("switch", ["off", "on"])
async def test_rules_are_placed_read_back_and_taken_away_with_the_switch(tmp_path: Path, switch: str) -> None:
    card = RuleCard(switch=switch)
    rules = (
        ELEPHANT,
        {"flow": "udp6", "destination_address": "2001:2::1", "queue": 0},
        {"flow": "tcp4", "source_address": "198.18.0.2", "destination_port": 80, "queue": None},
    )
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, flow_rules_asked(card, *rules))
    assert row.outcome is Outcome.CHANGED
    command = f"ethtool -N {RULES_DEVICE} flow-type udp4 src-port 60000 action 3"
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
    await tune(stack, flow_rules_asked(card, ELEPHANT))
    assert len(card.places) == 2
    assert await stack.undo_all() == []
    assert card.places == {7: theirs}
    with pytest.raises(NotReadyError, match="of others is for the same frames"):
        await tune(stack, flow_rules_asked(card, {"flow": "udp4", "source_port": 5000, "queue": 2}))


@pytest.mark.parametrize(
    ("card", "why"),
    [(RuleCard(switch="off [fixed]"), "takes no rules for flows"), (RuleCard(queues=2), "there are 2 receive queues")],
    ids=["no rules", "too few queues"],
)
async def test_what_the_adapter_cannot_do_is_said(tmp_path: Path, card: RuleCard, why: str) -> None:
    with pytest.raises(NotReadyError, match=why):
        await tune(UndoStack("run", None, tmp_path), flow_rules_asked(card, ELEPHANT))
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
        flow_rules_asked(RuleCard(), *rules)


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


# Parameters of DCQCN: written where each driver has them, and put back; what a driver lacks is said with a step.

CONFIGFS = "/sys/kernel/config"
DCQCN = (
    (
        "mlx5 of MLNX_OFED",
        {"ecn/roce_rp/rpg_ai_rate": "5", "ecn/roce_rp/rpg_hai_rate": "50", "ecn/roce_np/cnp_dscp": "48"},
        {"rpg_ai_rate": 10, "cnp_dscp": 46},
        {"ecn/roce_rp/rpg_ai_rate": "10", "ecn/roce_rp/rpg_hai_rate": "50", "ecn/roce_np/cnp_dscp": "46"},
    ),
    (
        "mlx5 of the kernel",
        {f"/sys/kernel/debug/mlx5/{ADDRESS}/cc_params/rp_ai_rate": "5"},
        {"rp_ai_rate": 7},
        {f"/sys/kernel/debug/mlx5/{ADDRESS}/cc_params/rp_ai_rate": "7"},
    ),
    (
        "bnxt_re",
        {
            **{
                f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/{name}": "0x0" for name in ("ecn_enable", "ecn_marking", "apply")
            },
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/cc_mode": "0",
        },
        {"ecn_enable": True, "ecn_marking": "0x1", "cc_mode": 1},
        {
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/ecn_enable": "1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/ecn_marking": "0x1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/cc_mode": "1",
            f"{CONFIGFS}/bnxt_re/mlx5_0/ports/1/cc/apply": "0x1",
        },
    ),
    (
        "irdma of ice",
        {f"{CONFIGFS}/irdma/mlx5_0/roce_dcqcn_enable": "0", f"{CONFIGFS}/irdma/mlx5_0/roce_dctcp_enable": "1"},
        {"roce_dcqcn_enable": True},
        {f"{CONFIGFS}/irdma/mlx5_0/roce_dcqcn_enable": "1", f"{CONFIGFS}/irdma/mlx5_0/roce_dctcp_enable": "1"},
    ),
)


def of_net(path: str) -> str:
    return path if path.startswith("/") else f"/sys/class/net/{DEVICE}/{path}"


def with_rdma(card: Card) -> Card:
    link = {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "netdev": DEVICE}
    card.answer("rdma -j link show", json.dumps([link]))
    return card


@pytest.mark.parametrize(("driver", "there", "values", "expected"), DCQCN, ids=lambda value: str(value)[:20])
async def test_parameters_of_congestion_control_are_set_where_each_driver_has_them(
    tmp_path: Path, driver: str, there: dict[str, str], values: dict[str, Any], expected: dict[str, str]
) -> None:
    card = with_rdma(Card())
    card.files |= {of_net(path): f"{text}\n" for path, text in there.items()}
    before = {path: text.strip() for path, text in card.files.items()}
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, asked(card, "rdma_congestion", values=values))
    assert row.outcome is Outcome.CHANGED, driver
    assert {path: card.files[of_net(path)].strip() for path in expected} == expected
    assert await stack.undo_all() == []
    after = {path: text.strip() for path, text in card.files.items() if not path.endswith("/apply")}
    assert after == {path: text for path, text in before.items() if not path.endswith("/apply")}


async def test_a_driver_without_such_parameters_says_what_would_show_them(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"mkdir /sys/kernel/config/bnxt_re/mlx5_0"):
        await tuned(tmp_path, with_rdma(Card()), "rdma_congestion", values={"cc_mode": 1})
    with pytest.raises(NotReadyError, match="it has no RDMA device"):
        await tuned(tmp_path, Card(), "rdma_congestion", values={"cc_mode": 1})


async def test_a_parameter_that_the_driver_lacks_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    card = with_rdma(Card())
    card.files[f"/sys/class/net/{DEVICE}/ecn/roce_rp/rpg_ai_rate"] = "5\n"
    with pytest.raises(NotReadyError, match="the driver has no rpg_speed; it has rpg_ai_rate"):
        await tuned(tmp_path, card, "rdma_congestion", values={"rpg_speed": 1})
