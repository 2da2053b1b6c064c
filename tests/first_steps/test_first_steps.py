"""The first bench file: ports and tables that are found, and what is written."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.bench_file import load
from nicbench.bench_file.load import parse
from nicbench.bench_file.reader import WrongBenchFileError
from nicbench.cli.commands.init import choose_driver
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.core.proof import Finding, Outcome, Proof, ProvenPort
from nicbench.first_steps.ports import Cabling, FoundPort, free_ports, look_at_ports, pair_up
from nicbench.first_steps.tables import how_to_import
from nicbench.first_steps.writing import Device, End, Frames, Streams, text_of, write

# Which ports there are and why not to use one, from recorded outputs; cables, from what arrived.

UP = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]
LINKS = [
    {"ifname": "lo", "link_type": "loopback", "flags": ["LOOPBACK", "UP", "LOWER_UP"]},
    {"ifname": "eth0", "link_type": "ether", "flags": UP},
    {"ifname": "eth1", "link_type": "ether", "flags": UP},
    {"ifname": "eth2", "link_type": "ether", "flags": ["BROADCAST", "MULTICAST"]},
    {"ifname": "eth3", "link_type": "ether", "flags": UP, "master": "br0", "linkinfo": {"info_slave_kind": "bridge"}},
    {"ifname": "br0", "link_type": "ether", "flags": UP, "linkinfo": {"info_kind": "bridge"}},
]
ADDRESSES = [{"ifname": "eth1", "addr_info": [{"local": "10.0.0.1", "prefixlen": 24, "scope": "global"}]}]
LLDP = {"lldp": {"interface": {"eth2": {"chassis": {"leaf1": {}}, "port": {"id": {"value": "swp7"}}}}}}


def machine() -> FakeHost:
    host = FakeHost()
    host.answer("ip -d -j link show", json.dumps(LINKS))
    host.answer("ip -j address show", json.dumps(ADDRESSES))
    host.answer("ip -j -4 route", json.dumps([{"dst": "default", "dev": "eth0"}]))
    host.answer("ethtool -i eth1", "driver: ice\nversion: 6.1\nbus-info: 0000:03:00.0\n")
    host.answer("ethtool eth1", "Settings for eth1:\n\tSpeed: 25000Mb/s\n\tLink detected: yes\n")
    host.answer("lldpcli", json.dumps(LLDP))
    return host


async def test_each_port_says_what_it_is_and_why_not_to_use_it() -> None:
    found = {port.name: port for port in await look_at_ports(machine())}
    assert list(found) == ["eth0", "eth1", "eth2", "eth3"]  # neither the loopback nor the bridge is a port
    assert found["eth0"].never == "carries the default route of this machine"
    assert found["eth1"].never is None
    assert found["eth1"].warning == "it has the address 10.0.0.1/24"
    assert (found["eth1"].driver, found["eth1"].speed_bits_per_s) == ("ice", 25_000_000_000)
    assert found["eth2"].is_free
    assert not found["eth2"].is_up
    assert found["eth2"].neighbour == "leaf1, port swp7"
    assert found["eth3"].warning == "it is a member of the bridge br0"


async def test_without_ethtool_and_lldp_nothing_is_made_up() -> None:
    host = machine()
    for program in ("ethtool", "lldpcli"):
        host.fail(program, "not found")
    host.answer("ethtool -i eth1", "")
    host.answer("ethtool eth1", "")
    eth1 = next(port for port in await look_at_ports(host) if port.name == "eth1")
    assert (eth1.driver, eth1.speed_bits_per_s, eth1.neighbour) == (None, None, None)


async def test_interfaces_that_cannot_be_listed_are_an_error() -> None:
    host = FakeHost()
    host.fail("ip", "Operation not permitted")
    with pytest.raises(NotReadyError, match="cannot be listed"):
        await look_at_ports(host)


def test_ports_with_a_link_are_offered_first() -> None:
    ports = [FoundPort("a", has_link=False), FoundPort("b", has_link=True), FoundPort("c", never="way out")]
    assert [port.name for port in free_ports(ports)] == ["b", "a"]


def test_a_frame_that_no_switch_forwards_tells_a_cable_from_a_switch() -> None:
    arrivals = frozenset({(0, "b", False), (0, "b", True), (1, "a", False), (2, "c", True), (0, "c", False)})
    assert pair_up(["a", "b", "c"], arrivals) == (Cabling("a", "b", True), Cabling("a", "c", False))
    assert str(Cabling("a", "c", False)) == "a <-> c: through a switch"


# From a table of results to the options of ``nicbench import``.

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_a_card_maker_needs_no_manual() -> None:
    found = how_to_import(ROOT / "examples" / "published-zero-loss.csv")
    assert found.options == ("--method", "throughput", "--configuration", "NIC", "--column", "Ports=link")
    assert found.open == ()


def test_what_only_its_author_knows_is_left_open(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("Frame size,Throughput (%),Remark\n64,88,cold\n128,100,warm\n")
    found = how_to_import(table)
    assert found.options == ("--method", "throughput", "--ignore", "Remark", "--link-speed", "SPEED")
    assert "needs the link's speed" in found.open[0].message


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("name,price\nA,10\n")
    with pytest.raises(UsageError, match="those of no method"):
        how_to_import(table)


# Every answer makes a bench file that the loader takes, and whose lines a reader can follow.

PORTS = ("enp1s0f0", "enp1s0f1")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ENDS = [
    (None, None),
    (End("e0"), End("e1")),
    (End("e0", "alice@nas"), End("e1")),
    (End("e0", ip="10.0.0.1/24"), End("e1", "client", ip="10.0.0.2/24")),
    (End("e0", "nas"), End("e1", "client")),
]
FRAMES = [
    Frames(PORTS, device, MACS if device is Device.ROUTER else (), full, sheet, virtual)
    for device, full, sheet, virtual in itertools.product(Device, (False, True), (False, True), (False, True))
]
STREAMS = [
    Streams(*ends, folder=folder, editors=editors, is_full=full)
    for ends, folder, editors, full in itertools.product(
        ENDS, (None, "/srv/media", "/stor/d{share}", "/"), (1, 5), (False, True)
    )
]


@pytest.mark.parametrize("wish", [*FRAMES, *STREAMS], ids=str)
def test_every_answer_makes_a_valid_commented_bench_file(wish: Frames | Streams) -> None:
    text = text_of(wish, "mine.yaml")
    assert parse(text.encode(), Path("mine.yaml")).tests
    assert max(map(len, text.splitlines())) <= 120
    assert "sudo nicbench run mine.yaml" in text


def test_the_answers_are_in_the_file(tmp_path: Path) -> None:
    wish = Frames(
        ("0000:03:00.0", "eth1"), Device.ROUTER, MACS, is_full=True, is_datasheet=True, title='yes: a "title"'
    )
    write(wish, tmp_path / "a.yaml")
    bench = load(tmp_path / "a.yaml")
    assert bench.title == 'yes: a "title"'
    assert (bench.ports["t0"].address, bench.ports["t1"].device) == ("0000:03:00.0", "eth1")
    assert bench.dut.options.model_dump()["macs"] == MACS
    assert bench.report.layout == "datasheet"
    assert bench.tests[0].options.model_dump()["trial"]["duration"] == 60.0  # RFC 2544 section 24


def test_virtual_ports_get_a_coarse_search_and_a_threshold_for_a_tester_that_shares_its_machine() -> None:
    virtual = parse(text_of(Frames(PORTS, are_virtual=True), "a.yaml").encode(), Path("a.yaml"))
    cards = parse(text_of(Frames(PORTS), "a.yaml").encode(), Path("a.yaml"))
    assert (dict(virtual.thresholds), virtual.tests[0].options.model_dump()["search"]["precision"]) == (
        {"unsent_share": 0.01},
        0.05,
    )
    assert (dict(cards.thresholds), cards.tests[0].options.model_dump()["search"]["precision"]) == ({}, 0.005)


@pytest.mark.parametrize(
    ("failed", "driver"),
    [((), None), (("xdp",), "net_af_xdp"), (("xdp", "net_af_xdp"), "net_af_packet"), (("net_af_packet",), None)],
)
def test_the_driver_is_one_that_was_proven_where_a_faster_one_failed(
    failed: tuple[str, ...], driver: str | None
) -> None:
    findings = tuple(
        Finding(name=f"drivers.{name}", outcome=Outcome.FAILED if name in failed else Outcome.PROVEN, seen="frames")
        for name in ("xdp", "net_af_xdp", "net_af_packet")
    )
    port = ProvenPort(device="e0", driver="igb", fingerprint="0123456789abcdef")
    proof = Proof(
        nicbench="0", kernel="6", made_at="2026-11-30", took_s=1, loop="plug", ports=(port,), findings=findings
    )
    found = choose_driver([FoundPort("e0", proof=proof), FoundPort("e1")])
    assert found == driver
    bench = parse(text_of(Frames(PORTS, driver=found), "a.yaml").encode(), Path("a.yaml"))
    assert bench.tester.options.model_dump()["driver"] == driver


def test_each_editor_has_a_folder_and_the_file_names_them_all(tmp_path: Path) -> None:
    wish = Streams(End("e0"), End("e1"), folder="/srv/media", editors=3)
    write(wish, tmp_path / "a.yaml")
    bench = load(tmp_path / "a.yaml")
    assert bench.dut.options.model_dump()["folder"] == "/srv/media/editor{share}"
    assert wish.folders == ("/srv/media/editor1", "/srv/media/editor2", "/srv/media/editor3")
    assert bench.tests[0].options.model_dump()["instances"] == (1, 2, 3)


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine\n")
    with pytest.raises(UsageError, match="there is such a file already"):
        write(Frames(PORTS), path)
    assert path.read_text() == "mine\n"


def test_an_answer_that_no_bench_file_may_have_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(WrongBenchFileError, match="whole path"):
        write(Streams(folder="media"), tmp_path / "mine.yaml")
    assert not (tmp_path / "mine.yaml").exists()
