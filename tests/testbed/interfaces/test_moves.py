"""Interfaces that are moved into a namespace: what is refused, what is reported before, how they return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure.host_readings import parse_counters
from nicbench.system.adapters.links import gid_index_of, gid_of, parse_rdma_links
from nicbench.testbed.interfaces import host_interfaces as rdma
from nicbench.testbed.interfaces.base import Making, Port
from nicbench.testbed.interfaces.host_interfaces import GIDS_SCRIPT, make_rdma_devices
from nicbench.testbed.interfaces.namespaces import address_words, assign_addresses, make_namespaces, move_interfaces
from nicbench.tuning.undo.adapters import DeleteRdmaLink
from nicbench.tuning.undo.base import undo_one
from nicbench.tuning.undo.network import DeleteIpObject, ReturnLink, SetLinkDown
from nicbench.tuning.undo.processes import DeleteNamespace

UP = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]
ADDRESS = {"family": "inet", "local": "192.0.2.7", "prefixlen": 24, "scope": "global", "broadcast": "192.0.2.255"}


def _machine(
    links: Mapping[str, Mapping[str, Any]] | None = None, addresses: Mapping[str, Any] | None = None
) -> FakeHost:
    """With the port e0; further links by name; namespaces are not there until they are made."""
    every = {"e0": {"flags": UP}, "eth0": {"flags": UP}, **(links or {})}
    given = {"e0": [ADDRESS], "eth0": [{**ADDRESS, "local": "10.0.0.5"}], **(addresses or {})}
    host = FakeHost("local")
    host.answer("ip -d -j link show", json.dumps([{"ifname": name, **link} for name, link in every.items()]))
    shown = [{"ifname": name, "addr_info": infos} for name, infos in given.items()]
    host.answer("ip -j address show", json.dumps(shown))
    host.answer("ip -j address show dev e0", json.dumps(shown[:1]))
    host.answer("ip -j -4 route show table all", json.dumps([{"dst": "default", "dev": "eth0"}]))
    host.answer("ip -j -4 route show table all dev e0", "[]")
    host.fail("test -e /run/netns/space", "")
    host.answer("ip netns exec space ip -j link show", json.dumps([{"ifname": "e0", "flags": UP}]))
    return host


def _making(machine: FakeHost, changes: NotedChanges, ip: str | None = None, device: str = "e0") -> Making:
    space = NetnsHost(machine, "space", "server")
    port = Port(host="server", device=device, ip=ip)
    return Making({"server": space}, {"s0": port}, changes, created=(space,))


async def test_a_port_is_moved_brought_up_and_given_its_address() -> None:
    machine, changes = _machine(), NotedChanges()
    inside = [{"ifname": "e0", "flags": UP}]
    machine.answer("ip netns exec space ip -d -j link show", json.dumps(inside))
    machine.answer("ip netns exec space ip -j address show", "[]")
    making = _making(machine, changes, "198.18.0.1/24")
    for step in (make_namespaces, move_interfaces, assign_addresses):
        await step(making)

    assert changes.undos == [
        DeleteNamespace(namespace="space", holding=("e0",)),
        ReturnLink(device="e0", namespace="space", up=True, addresses=("192.0.2.7/24 broadcast 192.0.2.255",)),
        DeleteIpObject(arguments=("address", "delete", "198.18.0.1/24", "dev", "e0")),
    ]
    words = [" ".join(command) for command in machine.commands]
    moved, up = words.index("ip link set dev e0 netns space"), words.index("ip netns exec space ip link set dev e0 up")
    given = words.index("ip netns exec space ip address add 198.18.0.1/24 dev e0 broadcast +")
    assert moved < up < given
    assert making.facts == {
        "namespaces": {"server": "space"},
        "moved_interfaces": {"e0": "into the namespace space"},
        "given_addresses": {"s0": "198.18.0.1/24"},
    }


@pytest.mark.parametrize(
    ("links", "device", "message"),
    [
        ({"e0": {"flags": UP, "master": "br0"}}, "e0", "in use: it is a member of the group br0"),
        ({"e0": {"flags": UP, "xdp": {"mode": 1, "prog": {"id": 7}}}}, "e0", "it has an XDP program"),
        ({"e0.5": {"flags": UP, "link": "e0", "linkinfo": {"info_kind": "vlan"}}}, "e0", r"in use by e0\.5"),
        ({}, "eth0", "carries the default route"),
        ({}, "e9", "there is no interface e9"),
        ({"lo": {"flags": [*UP, "LOOPBACK"]}}, "lo", "is the loopback interface"),
    ],
)
async def test_an_interface_that_serves_somebody_is_not_moved(
    links: dict[str, dict[str, Any]], device: str, message: str
) -> None:
    machine, changes = _machine(links), NotedChanges()
    with pytest.raises(NotReadyError, match=message):
        await move_interfaces(_making(machine, changes, device=device))
    assert not changes.undos


async def test_the_way_by_which_a_machine_is_reached_is_not_moved() -> None:
    machine, changes = _machine(), NotedChanges()
    machine.answer("ss", "0 0 192.0.2.7:22 192.0.2.1:51234\n")
    with pytest.raises(NotReadyError, match=r"its address 192\.0\.2\.7 has a connection with 192\.0\.2\.1:51234"):
        await move_interfaces(_making(machine, changes))
    assert not changes.undos


async def test_an_interface_with_a_route_of_somebody_is_not_moved() -> None:
    machine, changes = _machine(), NotedChanges()
    routes = [{"dst": "192.0.2.0/24", "protocol": "kernel"}, {"dst": "203.0.113.0/24", "protocol": "static"}]
    machine.answer("ip -j -4 route show table all dev e0", json.dumps(routes))
    with pytest.raises(NotReadyError, match=r"a route to 203\.0\.113\.0/24 leads through it"):
        await move_interfaces(_making(machine, changes))


async def test_a_namespace_that_is_there_is_somebodys() -> None:
    machine, changes = _machine(), NotedChanges()
    machine.answer("test -e /run/netns/space", "")
    with pytest.raises(NotReadyError, match="the network namespace space exists already"):
        await make_namespaces(_making(machine, changes))
    assert not changes.undos


async def test_what_cannot_be_moved_is_told_with_the_kernels_words() -> None:
    machine = _machine()
    machine.fail("ip link set dev e0 netns space", "RTNETLINK answers: Invalid argument", 2)
    with pytest.raises(NotReadyError, match="cannot be moved into a namespace") as refused:
        await move_interfaces(_making(machine, NotedChanges()))
    assert refused.value.place == "server, port s0"


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({**ADDRESS, "label": "e0:1"}, "192.0.2.7/24 broadcast 192.0.2.255 label e0:1"),
        (
            {**ADDRESS, "dynamic": True, "valid_life_time": 600, "preferred_life_time": 300},
            "192.0.2.7/24 broadcast 192.0.2.255 valid_lft 600 preferred_lft 300",
        ),
        (
            {"family": "inet", "local": "192.0.2.7", "address": "192.0.2.8", "prefixlen": 32, "scope": "global"},
            "192.0.2.7 peer 192.0.2.8/32",
        ),
        ({"family": "inet6", "local": "2001:db8::7", "prefixlen": 64, "scope": "global"}, "2001:db8::7/64 nodad"),
        ({"family": "inet6", "local": "2001:db8::9", "prefixlen": 64, "scope": "global", "mngtmpaddr": True}, None),
        ({"family": "inet6", "local": "fe80::7", "prefixlen": 64, "scope": "link"}, None),
    ],
)
def test_addresses_come_back_in_the_words_of_ip(info: dict[str, Any], words: str | None) -> None:
    assert address_words(info) == words


RETURN = ReturnLink(device="e0", namespace="space", up=True, addresses=("192.0.2.7/24",))


async def test_a_port_that_came_back_is_up_again() -> None:
    machine = _machine()
    machine.answer("ip -j link show dev e0", json.dumps([{"ifname": "e0", "flags": UP}]))
    assert await undo_one(machine, RETURN) is None
    (script,) = (command for command in machine.commands if command[0] == "sh")
    assert script[3:] == ("return", "space", "e0", "1", "192.0.2.7/24")


async def test_a_port_that_is_nowhere_is_told_of_and_settled() -> None:
    machine = _machine()
    machine.fail("ip -j link show dev e0", 'Device "e0" does not exist.')
    assert "neither here nor in the namespace space" in str(await undo_one(machine, RETURN))


async def test_a_namespace_is_not_deleted_while_it_holds_a_port() -> None:
    machine = _machine()
    machine.answer("test -e /run/netns/space", "")
    machine.answer("ip -j -n space link show", json.dumps([{"ifname": "lo"}, {"ifname": "e0"}]))
    with pytest.raises(HostError, match="still holds e0, which did not come back"):
        await undo_one(machine, DeleteNamespace(namespace="space", holding=("e0",)))
    assert not any(command[:3] == ("ip", "netns", "delete") for command in machine.commands)


def _in_place(machine: FakeHost, changes: NotedChanges, ip: str) -> Making:
    return Making({"server": machine}, {"s0": Port(host="server", device="e0", ip=ip)}, changes)


async def test_an_interface_that_is_down_is_brought_up_for_its_address_and_taken_down_again() -> None:
    machine, changes = _machine({"e0": {"flags": ["BROADCAST"]}}), NotedChanges()
    machine.answer("ip -j link show", json.dumps([{"ifname": "e0", "flags": UP}]))
    await assign_addresses(_in_place(machine, changes, "198.18.0.1/24"))
    assert [type(undo) for undo in changes.undos] == [SetLinkDown, DeleteIpObject]


async def test_an_address_that_is_there_is_neither_given_nor_taken() -> None:
    machine, changes = _machine(), NotedChanges()
    machine.answer("ip -j link show", json.dumps([{"ifname": "e0", "flags": UP}]))
    making = _in_place(machine, changes, "192.0.2.7/24")
    await assign_addresses(making)
    assert not changes.undos
    assert not making.facts


@pytest.mark.parametrize("address", ["10.0.0.77/24", "192.0.2.7/16", "0.0.0.1/1"])
async def test_no_network_is_given_to_two_interfaces_of_a_machine(address: str) -> None:
    changes = NotedChanges()
    with pytest.raises(NotReadyError, match=f"{address} is in the network of "):
        await assign_addresses(_in_place(_machine(), changes, address))
    assert not changes.undos


async def test_ipv6_is_switched_on_where_a_new_namespace_has_it_off() -> None:
    machine, changes = _machine(), NotedChanges()
    machine.files["/proc/sys/net/ipv6/conf/e0/disable_ipv6"] = "1\n"
    machine.answer("ip -j link show", json.dumps([{"ifname": "e0", "flags": UP}]))
    await assign_addresses(_in_place(machine, changes, "2001:db8::1/64"))
    assert machine.files["/proc/sys/net/ipv6/conf/e0/disable_ipv6"] == "0"
    added = ("ip", "address", "add", "2001:db8::1/64", "dev", "e0", "nodad")
    assert added in machine.commands


# Soft RoCE over a port: made, verified by its state and its GID, refused where it cannot be, removed again.


LISTED = ("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'")
ADD = "rdma link add rxe_r0 type rxe netdev r0"
GID = "0000:0000:0000:0000:0000:ffff:c612:0001"


class _Machine(FakeHost):
    """Has the link that it shows at once."""

    def __init__(
        self, state: str = "ACTIVE", gids: str = "0 r0 RoCE v1\n1 r0 RoCE v2\nsoft\n", there: str = ""
    ) -> None:
        super().__init__("receiver")
        shown = [{"ifindex": 0, "ifname": there or "rxe_r0", "port": 1, "state": state, "netdev": "r0"}]
        self.shown = json.dumps(shown)
        self.answer(LISTED, self.shown if there else "[]")
        self.answer(("sh", "-c", GIDS_SCRIPT.format(device=there or "rxe_r0", port=1, gid=GID)), gids)
        self.answer(ADD, self._add)

    def _add(self, _command: tuple[str, ...]) -> str:
        self.answer(LISTED, self.shown)
        return ""


def _making_of_rdma(host: Host, changes: NotedChanges) -> Making:
    port = Port.model_validate({"host": "receiver", "device": "r0", "ip": "198.18.0.1/24", "rdma": "rxe"})
    return Making({"receiver": host}, {"s0": port}, changes)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdma, "_STEP_S", 0.0)


async def test_it_is_made_over_the_interface_and_its_gid_is_found_and_told() -> None:
    machine, changes = _Machine(), NotedChanges()
    making = _making_of_rdma(machine, changes)
    await make_rdma_devices(making)
    assert changes.undos == [DeleteRdmaLink(device="rxe_r0")]
    assert making.facts == {"rdma_devices": {"s0": "rxe_r0, soft RoCE over r0, GID 1"}}


async def test_one_that_is_there_already_is_used_and_stays() -> None:
    changes = NotedChanges()
    machine = _Machine(there="rxe0")
    await make_rdma_devices(_making_of_rdma(machine, changes))
    assert changes.undos == []


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (_Machine(state="DOWN"), "is DOWN, not ACTIVE"),
        (_Machine(gids="0 r0 RoCE v1\n2 r1 RoCE v2\n"), "has no RoCE v2 GID of the address 198.18.0.1"),
        (_Machine(there="mlx5_0", gids="3 r0 RoCE v2\n"), "r0 has RDMA of its own: mlx5_0"),
        (NetnsHost(FakeHost(), "space"), "only in the first network namespace of a machine"),
    ],
)
async def test_one_that_could_not_be_measured_by_is_refused(machine: Host, words: str) -> None:
    with pytest.raises(NotReadyError, match=words):
        await make_rdma_devices(_making_of_rdma(machine, NotedChanges()))


async def test_a_kernel_without_soft_roce_says_what_to_do() -> None:
    machine = _Machine()
    machine.fail(ADD, "error: Operation not supported\n")
    with pytest.raises(NotReadyError, match=r"no soft RoCE \(rdma_rxe\): error: Operation not supported") as caught:
        await make_rdma_devices(_making_of_rdma(machine, NotedChanges()))
    assert "modprobe rdma_rxe" in str(caught.value.next_step)


async def test_what_cannot_be_deleted_is_told_and_what_is_gone_already_is_not() -> None:
    gone, stays = FakeHost(), FakeHost()
    for host in (gone, stays):
        host.fail("rdma link delete rxe_r0", "error: Device or resource busy\n")
    gone.fail("test -e /sys/class/infiniband/rxe_r0", "")
    assert await undo_one(gone, DeleteRdmaLink(device="rxe_r0")) is None
    with pytest.raises(HostError, match="cannot be deleted: error: Device or resource busy"):
        await undo_one(stays, DeleteRdmaLink(device="rxe_r0"))


def test_gids_of_addresses_are_as_the_kernel_writes_them() -> None:
    assert gid_of("198.18.0.1") == GID
    assert gid_of("2001:2::1") == "2001:0002:0000:0000:0000:0000:0000:0001"
    assert gid_index_of("3 r0 RoCE v2\n", "r0") == 3
    assert gid_index_of("3 r0 IB/RoCE v1\n4 r0.5 RoCE v2\nnonsense\n", "r0") is None


@pytest.mark.parametrize("text", ["{}", "[1]", "nonsense", '[{"port": 1}]'])
def test_what_rdma_says_that_is_no_list_of_links_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_rdma_links(text)


def test_what_soft_roce_counts_is_beside_what_its_interface_counts() -> None:
    said = "/sys/class/infiniband/rxe_r0/ports/1/hw_counters/out_of_seq_request:68\n"
    assert parse_counters(said) == {"out_of_seq_request": 68}


async def test_two_ports_of_a_client_are_one_interface_that_moves_once_and_the_server_answers_for_its_own() -> None:
    machine, changes = _machine(links={"e1": {"flags": UP}}, addresses={"e1": []}), NotedChanges()
    client, server = NetnsHost(machine, "space", "client"), NetnsHost(machine, "other", "server")
    for name, devices in (("space", ("e0",)), ("other", ("e1", "e2"))):
        inside = [{"ifname": device, "flags": UP} for device in devices]
        machine.answer(f"ip netns exec {name} ip -d -j link show", json.dumps(inside))
        machine.answer(f"ip netns exec {name} ip -j link show", json.dumps(inside))
        machine.answer(f"ip netns exec {name} ip -j address show", "[]")
    ports = {
        "c0": Port(host="client", device="e0", ip="198.18.0.2/24"),
        "c1": Port(host="client", device="e0", ip="198.18.1.2/24"),
        "s0": Port(host="server", device="e1", ip="198.18.0.1/24"),
        "s1": Port(host="server", device="e2", ip="198.18.1.1/24"),
    }
    making = Making({"client": client, "server": server}, ports, changes, created=(client,))
    for step in (make_namespaces, move_interfaces, assign_addresses):
        await step(making)
    assert [undo for undo in changes.undos if isinstance(undo, ReturnLink)] == [
        ReturnLink(device="e0", namespace="space", up=True, addresses=("192.0.2.7/24 broadcast 192.0.2.255",))
    ]
    given = [undo.arguments[2] for undo in changes.undos if isinstance(undo, DeleteIpObject)]
    assert given == ["198.18.0.2/24", "198.18.1.2/24", "198.18.0.1/24", "198.18.1.1/24"]
    arp = [" ".join(command) for command in machine.commands if "/all/arp_" in " ".join(command)]
    assert len(arp) == 2
    assert all("ip netns exec other" in command for command in arp)
