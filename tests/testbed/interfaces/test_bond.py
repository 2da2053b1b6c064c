"""Bonds that nicbench makes: their commands, what is refused, what is waited for, and how a port comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Completed
from nicbench.testbed.interfaces import bond as making
from nicbench.testbed.interfaces.base import BondOptions, BondSettings, create_command, join_commands
from nicbench.testbed.interfaces.bond import explain_waiting, list_bond_differences, make_bond
from nicbench.testbed.labs.clients import LabBond, members_of
from nicbench.tuning.undo.base import undo_one
from nicbench.tuning.undo.network import DeleteLink, ReleasePort

PORTS = ("e0", "e1")
PARTNER = "02:00:00:00:00:99"
MACS = {"e0": "02:00:00:00:00:01", "e1": "02:00:00:00:00:02"}
DISTRIBUTES = ["active", "aggregating", "in_sync", "collecting", "distributing"]


def _member(name: str, *, up: bool = True, aggregator: int | None = 1, master: str = "bond0") -> dict[str, Any]:
    lacp = {} if aggregator is None else {"ad_aggregator_id": aggregator, "ad_actor_oper_port_state_str": DISTRIBUTES}
    data = {"state": "ACTIVE", "mii_status": "UP" if up else "DOWN", **lacp}
    return {
        "ifname": name,
        "master": master,
        "flags": ["UP", "LOWER_UP"] if up else ["UP"],
        "linkinfo": {"info_slave_kind": "bond", "info_slave_data": data},
    }


def _bond(settings: BondSettings, *, up: bool = True, partner: str = PARTNER, **more: Any) -> dict[str, Any]:
    info = {"aggregator": 1, "num_ports": 2, "partner_mac": partner}
    data = {**settings.data(), "ad_info": info, **more}
    flags = ["UP", "LOWER_UP"] if up else ["UP"]
    return {"ifname": "bond0", "flags": flags, "mtu": 1500, "linkinfo": {"info_kind": "bond", "info_data": data}}


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (
            {},
            (
                "ip link add name bond0 type bond mode 802.3ad miimon 100 xmit_hash_policy layer3+4 lacp_rate fast "
                "min_links 0"
            ),
        ),
        (
            {"policy": "vlan+srcmac", "miimon": 50, "lacp_rate": "slow", "min_links": 2},
            (
                "ip link add name bond0 type bond mode 802.3ad miimon 50 xmit_hash_policy vlan+srcmac lacp_rate slow "
                "min_links 2"
            ),
        ),
        (
            {"mode": "balance-xor", "policy": "encap2+3"},
            "ip link add name bond0 type bond mode balance-xor miimon 100 xmit_hash_policy encap2+3",
        ),
        ({"mode": "active-backup"}, "ip link add name bond0 type bond mode active-backup miimon 100"),
        ({"mode": "balance-rr"}, "ip link add name bond0 type bond mode balance-rr miimon 100"),
    ],
)
def test_a_bond_is_made_by_one_command(options: dict[str, Any], command: str) -> None:
    assert " ".join(create_command("bond0", BondOptions(of=PORTS, **options))) == command


def test_a_port_is_down_when_it_joins() -> None:
    assert [" ".join(command) for command in join_commands("bond0", "e0")] == [
        "ip link set dev e0 down",
        "ip link set dev e0 master bond0",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": ["e0", "e0"]}, "`e0` is named twice"),
        ({"of": []}, "at least 1 item"),
        ({"of": ["e0/../x"]}, "should match pattern"),
        ({"of": ["e0"], "mode": "active-backup", "policy": "layer2"}, "does not hash, so `policy` has no effect"),
        ({"of": ["e0"], "mode": "balance-xor", "lacp_rate": "fast"}, "`lacp_rate` is an option of LACP"),
        ({"of": ["e0"], "mode": "lacp"}, "802.3ad"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        BondOptions.model_validate(options)


def test_a_bond_of_a_lab_and_its_partner() -> None:
    bond = LabBond(links=2, policy="layer2", switch_policy="layer3+4")
    assert members_of("s0", bond.links) == ("s0p1", "s0p2")
    assert (bond.hashes_by, bond.partner.hashes_by) == ("layer2", "layer3+4")
    assert bond.words == "802.3ad, layer2, at the other end layer3+4"
    assert not LabBond(mode="active-backup").switch_knows_it
    assert LabBond(mode="balance-rr").words == "balance-rr"


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ([_bond(BondSettings()), _member("e0"), _member("e1")], ""),
        ([_bond(BondSettings(), up=False), _member("e0", up=False), _member("e1", up=False)], "bond0 has no carrier"),
        ([_bond(BondSettings()), _member("e0"), _member("e1", up=False)], "e1 is down: e0 is up in aggregator 1, e1"),
        (
            [_bond(BondSettings(), partner="00:00:00:00:00:00"), _member("e0"), _member("e1", aggregator=2)],
            "the other end does not speak LACP: e0 is up in aggregator 1, e1 is up in aggregator 2",
        ),
        (
            [_bond(BondSettings()), _member("e0"), _member("e1", aggregator=2)],
            (
                f"not all ports are in the active aggregator 1 with the partner {PARTNER}: e0 is up in "
                "aggregator 1, e1 is up in aggregator 2"
            ),
        ),
        ([_bond(BondSettings()), _member("e0"), _member("e1", master="br0")], "e1 is down"),
        ([], "bond0 has no carrier: e0 does not exist, e1 does not exist"),
    ],
)
def test_what_keeps_a_bond_from_working_is_said(links: list[dict[str, Any]], says: str) -> None:
    said = explain_waiting(links, "bond0", BondSettings(), PORTS)
    assert said.startswith(says) if says else said == ""


def test_a_bond_without_lacp_needs_links_alone() -> None:
    settings = BondSettings(mode="balance-xor")
    links = [_bond(settings), _member("e0", aggregator=None), _member("e1", aggregator=None)]
    assert explain_waiting(links, "bond0", settings, PORTS) == ""


def test_what_the_kernel_made_something_else_of_is_named() -> None:
    settings = BondSettings(policy="vlan+srcmac")
    assert list_bond_differences([_bond(settings)], "bond0", settings, 1500) == []
    other = _bond(settings, xmit_hash_policy="layer2")
    assert list_bond_differences([other], "bond0", settings, 9000) == [
        "xmit_hash_policy is layer2 instead of vlan+srcmac",
        "its MTU is 1500 instead of 9000",
    ]


def _machine(after: Sequence[Mapping[str, Any]] | None = None, **links: Mapping[str, Any]) -> FakeHost:
    """Two free ports; once the bond is there ``ip`` answers ``after``."""
    host = FakeHost("server")
    before = [
        {"ifname": name, "flags": ["UP", "LOWER_UP"], "address": mac, "mtu": 1500, **links.get(name, {})}
        for name, mac in MACS.items()
    ]
    host.answer("ip -d -j link show", json.dumps(before))
    host.answer("ip -j address show", "[]")
    wanted = after if after is not None else [_bond(BondSettings()), _member("e0"), _member("e1")]
    host.answer("ip -j -d link show", json.dumps(list(wanted)))
    return host


async def test_a_bond_is_made_with_the_undo_of_each_port_and_told() -> None:
    host, changes = _machine(e1={"flags": [], "mtu": 9000}), NotedChanges()
    told = await make_bond(changes, host, "bond0", BondOptions(of=PORTS), "server, port s0")

    assert changes.undos == [
        DeleteLink(device="bond0"),
        ReleasePort(device="e0", bond="bond0", is_up=True, mac=MACS["e0"], mtu_bytes=1500),
        ReleasePort(device="e1", bond="bond0", is_up=False, mac=MACS["e1"], mtu_bytes=9000),
    ]
    words = [" ".join(command) for command in host.commands]
    assert words.index("modprobe bonding max_bonds=0") < words.index("ip link set dev e0 master bond0")
    assert "ip link set dev bond0 up" in words
    assert told["of"] == ["e0", "e1"]
    assert told["xmit_hash_policy"] == "layer3+4"


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"e0": {"master": "br0"}}, "in use: it is a member of the group br0"),
        ({"e0": {"flags": ["LOOPBACK"]}}, "is the loopback interface"),
    ],
)
async def test_a_port_that_serves_somebody_is_not_taken(links: dict[str, Any], message: str) -> None:
    host, changes = _machine(**links), NotedChanges()
    with pytest.raises(NotReadyError, match=message):
        await make_bond(changes, host, "bond0", BondOptions(of=PORTS), "server, port s0")
    assert not changes.undos


async def test_a_name_that_is_taken_is_refused() -> None:
    host, changes = _machine(), NotedChanges()
    with pytest.raises(NotReadyError, match="there is an interface e1 already"):
        await make_bond(changes, host, "e1", BondOptions(of=("e0",)), "server, port s0")
    assert not changes.undos


async def test_a_kernel_without_bonding_says_where_there_is_one() -> None:
    host, changes = _machine(), NotedChanges()
    host.fail("ip link add name bond0 type bond", "Error: Unknown device type.")
    with pytest.raises(NotReadyError, match="has no bonding") as failed:
        await make_bond(changes, host, "bond0", BondOptions(of=PORTS), "server, port s0")
    assert "on: guest" in str(failed.value.next_step)


async def test_a_bond_that_does_not_come_together_ends_with_each_ports_aggregator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(making, "_STEP_S", 0.0)
    alone = [_bond(BondSettings(), partner="00:00:00:00:00:00"), _member("e0"), _member("e1", aggregator=2)]
    host, changes = _machine(alone), NotedChanges()
    with pytest.raises(NotReadyError, match="e0 is up in aggregator 1, e1 is up in aggregator 2") as failed:
        await make_bond(changes, host, "bond0", BondOptions(of=PORTS), "server, port s0")
    assert "one LACP channel" in str(failed.value.next_step)
    assert len(changes.undos) == 3


class _Port:
    """An interface as ``ip`` shows and sets it."""

    def __init__(self, host: FakeHost, **state: Any) -> None:
        self.state: dict[str, Any] = {"ifname": "e0", "flags": [], "address": MACS["e0"], "mtu": 1500, **state}
        host.answer("ip -j -d link show dev e0", lambda command: Completed(command, 0, json.dumps([self.state]), ""))
        host.answer("ip link set dev e0", self._set)

    def _set(self, command: tuple[str, ...]) -> str:
        word, *value = command[5:]
        if word == "nomaster":
            self.state |= {"flags": []}
            del self.state["master"]
        elif word in ("up", "down"):
            self.state["flags"] = ["UP"] if word == "up" else []
        else:
            self.state[word] = int(value[0]) if word == "mtu" else value[0]
        return ""


RELEASED = ReleasePort(device="e0", bond="bond0", is_up=True, mac=MACS["e0"], mtu_bytes=1500)


async def test_a_port_comes_back_as_it_was() -> None:
    host = FakeHost("server")
    port = _Port(host, master="bond0", flags=["UP"], address=MACS["e1"], mtu=9000)
    assert await undo_one(host, RELEASED) is None
    assert port.state == {"ifname": "e0", "flags": ["UP"], "address": MACS["e0"], "mtu": 1500}
    host.commands.clear()
    assert await undo_one(host, RELEASED) is None
    assert not any(command[:3] == ("ip", "link", "set") for command in host.commands)


async def test_a_port_that_somebody_took_since_is_left_to_them() -> None:
    host = FakeHost("server")
    port = _Port(host, master="br0", flags=["UP"])
    assert "somebody made it a member of br0" in str(await undo_one(host, RELEASED))
    assert port.state["master"] == "br0"


async def test_a_port_whose_card_is_gone_is_settled() -> None:
    host = FakeHost("server")
    host.fail("ip -j -d link show dev e0", "Device does not exist")
    assert await undo_one(host, RELEASED) is None


async def test_a_port_that_does_not_come_back_is_told() -> None:
    host = FakeHost("server")
    stuck = {"ifname": "e0", "master": "bond0", "flags": [], "address": MACS["e1"], "mtu": 1500}
    host.answer("ip -j -d link show dev e0", json.dumps([stuck]))
    with pytest.raises(HostError, match="should be out of bond0, up"):
        await undo_one(host, RELEASED)
