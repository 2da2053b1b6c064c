"""The router of workloads: forwarding and routes with their undo, and what it refuses to call forwarded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from lab import Wires, wires
from tests.commands import run_tried
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.round import EndpointFacts
from nicbench.testbed.duts.firewall import Firewall, FirewallOptions, firewall_ruleset
from nicbench.testbed.duts.kernel_forward import (
    FILTER_TABLE,
    KernelForward,
    KernelForwardOptions,
    filter_ruleset,
    set_up_filter,
)
from nicbench.testbed.duts.router import Router, RouterOptions
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.stack import UndoStack

PORTS = ("s0", "s1")
FORWARD = "/proc/sys/net/ipv4/ip_forward"
NO_ROUTE = ("ip", "-4", "-j", "route", "show", "exact")


def end(host: FakeHost, name: str, address: str, port: str | None = None) -> Endpoint:
    facts = EndpointFacts(name=name, host=host.name, machine=host.name, address=address, device=name, port=port)
    return Endpoint(host, facts)


def bed_of(networks: tuple[str, str] = ("198.18.0", "198.18.1"), *, one_host: bool = False) -> EndpointTestbed:
    """Two ports, a client at each, whose kernels say what a routed pair's do."""
    server = FakeHost("server", {FORWARD: "0\n"})
    servers, clients = [], []
    for number, network in enumerate(networks):
        servers.append(end(server, f"s{number}", f"{network}.1"))
        info = [{"local": f"{network}.1", "prefixlen": 24, "scope": "global"}]
        server.answer(("ip", "-j", "address", "show", "dev", f"s{number}"), json.dumps([{"addr_info": info}]))
        host = FakeHost("both" if one_host else f"h{number}")
        way = [{"gateway": f"{network}.1", "dev": f"c{number}"}]
        host.answer(("ip", "-4", "-j", "route", "get"), json.dumps(way))
        clients.append(end(host, f"c{number}", f"{network}.10", f"s{number}"))
    return EndpointTestbed(servers=tuple(servers), clients=tuple(clients), link_is_nominal=True)


def up(bed: EndpointTestbed, folder: Path, **options: bool) -> tuple[Router, UndoStack]:
    router, changes = Router(RouterOptions(**options)), UndoStack("run", folder, folder / "run")
    asyncio.run(router.up(bed, changes))
    return router, changes


def commands_of(host: object, *words: str) -> list[tuple[str, ...]]:
    assert isinstance(host, FakeHost)
    return [command for command in host.commands if all(word in command for word in words)]


def test_forwarding_is_switched_on_and_each_client_reaches_the_other_network_alone(tmp_path: Path) -> None:
    bed = bed_of()
    router, changes = up(bed, tmp_path)
    assert tuple(commands_of(bed.clients[0].host, "add")[0][at] for at in (4, 6, 8)) == (
        "198.18.1.0/24",
        "198.18.0.1",
        "c0",
    )
    assert not [command for end in bed.clients for command in commands_of(end.host, "default")]
    assert router.disclosure()["settings"] == {"net/ipv4/ip_forward": "1"}
    assert len([command for commands in router.disclosure()["commands"].values() for command in commands]) == 2
    assert asyncio.run(changes.undo_all()) == []
    assert isinstance(bed.server, FakeHost)
    assert bed.server.files[FORWARD].strip() == "0"
    assert [entry.undo.kind for entry in changes.entries].count("delete_ip_object") == 2


def test_a_route_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    bed = bed_of()
    host = bed.clients[0].host
    assert isinstance(host, FakeHost)
    host.answer((*NO_ROUTE, "198.18.1.0/24"), json.dumps([{"gateway": "198.18.0.1", "dev": "c0"}]))
    router, _ = up(bed, tmp_path)
    assert commands_of(host, "add") == []
    assert "there already" in str(router.disclosure()["commands"]["h0"])


def test_ports_in_one_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="are in one network"):
        up(bed_of(("198.18.0", "198.18.0")), tmp_path)


def test_a_host_that_is_a_client_of_two_ports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="would not pass the router"):
        up(bed_of(one_host=True), tmp_path)


def test_another_way_to_that_network_is_not_called_forwarding(tmp_path: Path) -> None:
    bed = bed_of()
    host = bed.clients[1].host
    assert isinstance(host, FakeHost)
    host.answer(("ip", "-4", "-j", "route", "get"), json.dumps([{"gateway": "10.0.0.1", "dev": "eth9"}]))
    with pytest.raises(NotReadyError, match=r"packets from c1 to c0 do not go through the router.*10\.0\.0\.1"):
        up(bed, tmp_path)


def test_a_router_that_drops_what_it_should_forward_is_found_before_the_first_test(tmp_path: Path) -> None:
    bed = bed_of()
    host = bed.clients[0].host
    assert isinstance(host, FakeHost)
    host.fail("ping", "", 1)
    with pytest.raises(NotReadyError, match="does not answer") as refused:
        up(bed, tmp_path)
    assert "ping: false" in str(refused.value.next_step)
    up(bed, tmp_path / "again", ping=False)


# The firewall: what its rules let pass, and its table with its undo.


def test_it_drops_what_belongs_to_no_connection_and_has_no_limit_by_itself() -> None:
    text = firewall_ruleset(FirewallOptions(), PORTS)
    assert "policy drop;" in text
    assert "ct state established,related accept" in text
    assert "count over" not in text
    assert "limit rate" not in text


def test_limits_stand_before_a_connection_is_let_in() -> None:
    lines = firewall_ruleset(FirewallOptions(connections=200, connection_rate=300, burst=30), PORTS).splitlines()
    rate = next(at for at, line in enumerate(lines) if "limit rate over 300/second burst 30 packets" in line)
    count = next(at for at, line in enumerate(lines) if "ct count over 200" in line)
    allowed = next(at for at, line in enumerate(lines) if line.endswith("== syn accept"))
    assert rate < count < allowed


def test_addresses_are_translated_and_syns_answered_only_at_its_own_ports() -> None:
    text = firewall_ruleset(FirewallOptions(masquerade=True, syn_proxy=True), PORTS)
    assert 'oifname { "s1" } masquerade' in text
    assert 'iifname { "s0", "s1" } tcp flags & (fin|syn|rst|ack) == syn notrack' in text
    assert text.index("synproxy mss") < text.index("ct state invalid drop")
    with pytest.raises(ValueError, match="answers SYNs before they are counted"):
        FirewallOptions(syn_proxy=True, connections=5)


@pytest.mark.parametrize("empty", [True, False])
def test_a_round_begins_with_an_empty_table_if_asked_for(empty: bool, tmp_path: Path) -> None:
    bed = bed_of()
    assert isinstance(bed.server, FakeHost)
    bed.server.fail(("nft", "list"), "no such table")
    firewall = Firewall(FirewallOptions(empty_table=empty))
    asyncio.run(firewall.up(bed, UndoStack("run", tmp_path, tmp_path / "run")))
    asyncio.run(firewall.begin_round())
    assert any("conntrack -F" in word for command in bed.server.commands for word in command) == empty
    bed.server.fail(("sh", "-c"), "perl: not found")
    if empty:
        with pytest.raises(NotReadyError, match="the table of connections cannot be emptied") as caught:
            asyncio.run(firewall.begin_round())
        assert "empty_table: false" in (caught.value.next_step or "")


# The packet filter in front of forwarding: its rules, its refusals, and its removal with real frames.


def test_each_rule_names_a_source_that_no_frame_has() -> None:
    lines = filter_ruleset("ip", 300).splitlines()
    assert [line.strip() for line in lines if "drop" in line][::299] == [
        "ip saddr 240.0.0.1 drop",
        "ip saddr 240.0.1.44 drop",
    ]
    assert "    ip6 saddr 2001:db8::1 drop" in filter_ruleset("ip6", 1).splitlines()


async def test_a_host_without_nftables_says_what_to_install(tmp_path: Path) -> None:
    host = FakeHost()
    host.fail(("nft",), "nft: not found", status=127)
    with pytest.raises(NotReadyError, match="the packet filter cannot be set up") as caught:
        await set_up_filter(host, UndoStack("run", tmp_path, runtime=tmp_path / "runtime"), 10, ipv6=False)
    assert "apt-get install nftables" in (caught.value.next_step or "")


@pytest.mark.lab
async def test_the_rules_are_there_while_the_dut_is_up_and_gone_afterwards(tmp_path: Path) -> None:
    with wires() as lab:
        changes = UndoStack("filter-test", tmp_path, runtime=tmp_path / "runtime")
        dut = KernelForward(KernelForwardOptions(filter_rules=25))
        await dut.up(lab.testbed, changes)
        try:
            assert rules(lab, "ip").count("drop") == 25
            assert rules(lab, "ip6").count("drop") == 25
            assert dut.disclosure()["filter_rules"] == 25
        finally:
            await changes.undo_all()
        assert rules(lab, "ip") == ""


def rules(lab: Wires, family: str) -> str:
    """The kernel's table; empty without one."""
    command = ("ip", "netns", "exec", lab.dut, "nft", "list", "table", family, FILTER_TABLE)
    return run_tried(command).stdout
