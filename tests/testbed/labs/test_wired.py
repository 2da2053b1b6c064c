"""A testbed of real ports, from what the bench file says of hosts, ports and links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError, UsageError
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.real_hosts import make_wired_testbed as make_testbed
from nicbench.testbed.testers.packets import Packets

GOLDEN = Path(__file__).parents[2] / "golden" / "interfaces"


def _recorded(name: str) -> FakeHost:
    """It answers with the recorded interfaces."""
    host = FakeHost(name, files={"/sys/class/net/up0/speed": "25000\n", "/sys/class/net/member0/speed": "10000\n"})
    host.answer("ip -d -j link show", (GOLDEN / "link.json").read_text())
    host.answer("ip -j address show", (GOLDEN / "address.json").read_text())
    host.answer("ip -j -4 route show table all", (GOLDEN / "route4.json").read_text())
    host.answer("ip -j -6 route show table all", (GOLDEN / "route6.json").read_text())
    return host


HOSTS = {name: _recorded(name) for name in ("tester", "dut")}


async def test_links_join_the_testers_ports_to_the_duts_whichever_stands_first() -> None:
    ports = {
        "t0": Port(host="tester", device="up0"),
        "d0": Port(host="dut", device="member0"),
        "t1": Port(host="tester", device="pup0", driver="net_af_packet"),
        "d1": Port(host="dut", device="busy0"),
    }
    testbed = await make_testbed(HOSTS, ports, (("t0", "d0"), ("d1", "t1")), Packets.Options())

    assert [port.name for port in testbed.tester_ports] == ["t0", "t1"]
    assert [port.device for port in testbed.dut_ports] == ["member0", "busy0"]
    assert [port.engine["kind"] for port in testbed.tester_ports] == ["af_xdp", "af_packet"]
    assert testbed.tester_ports[0].mac == _mac("up0")
    assert testbed.dut_ports[0].mac == _mac("member0")
    assert testbed.dut.name == "dut"


@pytest.mark.parametrize(("dut", "cores"), [("dut", ()), ("tester", ((0, 1), (2, 3)))])
async def test_hyperthreads_matter_only_where_tester_and_dut_are_on_one_machine(
    dut: str, cores: tuple[tuple[int, ...], ...]
) -> None:
    machine = _recorded("tester")
    machine.files["/proc/self/status"] = "Cpus_allowed_list:\t0-3\n"
    siblings = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list:{}\n"
    machine.answer("sh -c", "".join(siblings.format(cpu, "0-1" if cpu < 2 else "2-3") for cpu in range(4)))
    hosts = {"tester": machine, "dut": NetnsHost(machine, "d", "dut") if dut == "tester" else _recorded("dut")}
    ports = {"t0": Port(host="tester", device="up0"), "d0": Port(host="dut", address="0000:03:00.0")}
    testbed = await make_testbed(hosts, ports, (("t0", "d0"),), Packets.Options())
    assert (testbed.cores.worker, testbed.cores.dut) == (0, (2,))
    assert testbed.cores.physical_cores == cores


async def test_any_number_of_links_gives_as_many_ports_in_their_order() -> None:
    near, far = ("t0", "t1", "t2", "t3"), ("d0", "d1", "d2", "d3")
    testers = {name: Port(host="tester", address=f"0000:03:00.{number}") for number, name in enumerate(near)}
    duts = dict(zip(far, (Port(host="dut", device=name) for name in ("up0", "member0", "pup0", "busy0")), strict=True))
    links = tuple(zip(near, far, strict=True))
    testbed = await make_testbed(HOSTS, testers | duts, (links[2], links[0], links[3], links[1]), Packets.Options())

    assert [port.name for port in testbed.tester_ports] == ["t2", "t0", "t3", "t1"]
    assert [port.name for port in testbed.dut_ports] == ["d2", "d0", "d3", "d1"]


async def test_the_slowest_link_bounds_the_rate_and_a_veths_speed_is_nominal() -> None:
    ports = {"t0": Port(host="tester", device="up0"), "d0": Port(host="dut", device="member0")}
    testbed = await make_testbed(HOSTS, ports, (("t0", "d0"),), Packets.Options())

    assert (testbed.link_bits_per_s, testbed.link_is_nominal) == (10e9, True)
    assert any("not a network card" in statement for statement in testbed.statements)


async def test_ports_by_address_and_by_virtual_device_are_the_engines_to_check() -> None:
    ports = {
        "t0": Port(host="tester", address="0000:03:00.0", devargs="mprq_en=1"),
        "t1": Port(host="tester", vdev="net_null0", lossless=True),
    }
    testbed = await make_testbed(HOSTS, ports, (), Packets.Options())

    assert testbed.tester_ports[0].engine == {
        "name": "t0", "kind": "pci", "address": "0000:03:00.0", "devargs": "mprq_en=1"
    }  # fmt: skip
    assert testbed.tester_ports[1].engine == {"name": "t1", "kind": "vdev", "vdev": "net_null0", "lossless": True}
    assert testbed.dut is None
    assert testbed.link_is_nominal
    assert any("assumed" in statement for statement in testbed.statements)


@pytest.mark.parametrize(
    ("device", "message"), [("way0", "default route"), ("none0", "no interface"), ("down0", "down")]
)
async def test_an_interface_that_may_not_be_used_stops_the_run(device: str, message: str) -> None:
    with pytest.raises(NotReadyError, match=message):
        await make_testbed(HOSTS, {"t0": Port(host="tester", device=device)}, (), Packets.Options())


@pytest.mark.parametrize(
    "vdev",
    [
        "net_af_packet0,iface=way0",
        "net_af_xdp1,iface=way0,start_queue=0",
        "eth_af_packet0, iface = way0",
        "net_pcap0,iface=way0",
        "net_pcap0,rx_iface=up0,tx_iface=way0",
        "net_tap0,iface=new0,remote=way0",
        "net_failsafe0,dev(net_af_packet0,iface=way0)",
        "net_new_driver0,uplink=way0",
        "net_af_packet0,iface=pway0",
    ],
)
async def test_a_virtual_device_on_the_way_out_stops_the_run(vdev: str) -> None:
    with pytest.raises(NotReadyError, match="carries the default route") as refused:
        await make_testbed(HOSTS, {"t0": Port(host="tester", vdev=vdev)}, (), Packets.Options())
    assert refused.value.exit_status == 3


@pytest.mark.parametrize(
    ("vdev", "message"),
    [
        ("net_af_packet0,iface=none0", "no interface none0"),
        ("net_af_packet0,iface=way0:1", "no interface way0:1"),
        ("net_af_packet0,iface=busy0", "has the address"),
        ("net_failsafe0,exec(echo net_null0)", "cannot be checked"),
    ],
)
async def test_a_virtual_device_needs_a_free_interface_that_is_there(vdev: str, message: str) -> None:
    with pytest.raises(NotReadyError, match=message):
        await make_testbed(HOSTS, {"t0": Port(host="tester", vdev=vdev)}, (), Packets.Options())


@pytest.mark.parametrize("vdev", ["net_af_packet0,iface=up0", "net_tap0,iface=new0", "net_null0,size=64", "net_ring0"])
async def test_a_virtual_device_on_a_free_interface_or_on_none_may_be_used(vdev: str) -> None:
    testbed = await make_testbed(HOSTS, {"t0": Port(host="tester", vdev=vdev)}, (), Packets.Options())
    assert testbed.tester_ports[0].engine["vdev"] == vdev


@pytest.mark.parametrize("folder", ["net", "virtio0/net"])
@pytest.mark.parametrize(
    "port",
    [Port(host="tester", address="0000:0A:00.0"), Port(host="tester", vdev="net_bonding0,slave=0a:00.0,mode=1")],
    ids=["the card itself", "a bond of it"],
)
async def test_a_card_whose_kernel_interface_leads_out_stops_the_run(folder: str, port: Port) -> None:
    card = "/sys/bus/pci/devices/0000:0a:00.0/"
    host = _recorded("tester")
    host.answer(f"find {card}", f"{card}{folder}/way0\n{card}{folder}/way0/queues\n")
    with pytest.raises(NotReadyError, match="carries the default route"):
        await make_testbed({"tester": host}, {"t0": port}, (), Packets.Options())


async def test_the_dut_sits_on_one_host() -> None:
    hosts = {**HOSTS, "other": HOSTS["dut"]}
    ports = {
        "t0": Port(host="tester", vdev="net_null0"),
        "t1": Port(host="tester", vdev="net_null1"),
        "d0": Port(host="dut", device="up0"),
        "d1": Port(host="other", device="up0"),
    }
    with pytest.raises(UsageError, match="dut, other"):
        await make_testbed(hosts, ports, (("t0", "d0"), ("t1", "d1")), Packets.Options())


def _mac(device: str) -> str:
    links = json.loads((GOLDEN / "link.json").read_text())
    return next(str(link["address"]) for link in links if link["ifname"] == device)
