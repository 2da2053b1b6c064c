"""``init`` writes a bench file from options or answers, and says what to run next."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import load
from nicbench.cli.commands import init
from nicbench.first_steps import ports
from nicbench.first_steps.ports import Cabling, FoundPort

PORTS = (
    FoundPort("eth0", driver="igb", is_up=True, has_link=True, never="carries the default route of this machine"),
    FoundPort("eth1", driver="ice", speed_bits_per_s=25_000_000_000, is_up=True, has_link=True),
    FoundPort("eth2", driver="ice", is_up=True, has_link=True, warning="it has the address 10.0.0.1/24"),
    FoundPort("eth3", driver="ice", is_up=True, has_link=True, neighbour="leaf1, port swp7"),
)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with four ports, of which two are free; nobody is there to answer."""

    async def look() -> tuple[FoundPort, ...]:
        return PORTS

    monkeypatch.setattr(ports, "ports_of_this_machine", look)
    monkeypatch.setattr(ports, "find_cabling", lambda names: (Cabling(*names[:2], is_direct=False),))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives these answers, one after the other."""

    def give(*texts: str) -> list[str]:
        left = list(texts)
        for module in (init, init):
            monkeypatch.setattr(module, "can_ask", lambda: True)
        monkeypatch.setattr("nicbench.cli.commands.init.can_ask", lambda: True)
        monkeypatch.setattr("typer.prompt", lambda *_, **__: left.pop(0))
        monkeypatch.setattr("typer.confirm", lambda *_, **__: left.pop(0) == "y")
        return left

    return give


def test_two_ports_with_a_device_between_them(nicbench: Any) -> None:
    ended = nicbench("init", "rfc2544", "--ports", "eth1,eth3")
    assert ended.status == 0
    assert ended.stdout == "rfc2544.yaml\n"
    assert "ice, link up, 25 Gb/s" in ended.stderr
    assert "eth3  ice, link up, cabled to leaf1, port swp7 (LLDP)" in ended.stderr
    assert "sudo nicbench run rfc2544.yaml" in ended.stderr
    bench = load(Path("rfc2544.yaml"))
    assert [port.device for port in bench.ports.values()] == ["eth1", "eth3"]
    assert [test.method_kind for test in bench.tests] == ["throughput", "latency"]


def test_the_way_out_of_the_machine_is_never_taken(nicbench: Any) -> None:
    ended = nicbench("init", "rfc2544", "--ports", "eth0,eth1")
    assert ended.status == 3
    assert "eth0: the port carries the default route of this machine" in ended.stderr
    assert not Path("rfc2544.yaml").exists()


def test_no_port_is_proposed_that_no_test_may_use(nicbench: Any) -> None:
    assert "did you mean `eth0`" not in nicbench("init", "rfc2544", "--ports", "eth00,eth1").stderr


def test_a_port_that_serves_somebody_is_taken_with_a_warning_only(nicbench: Any) -> None:
    assert "eth2" not in nicbench("init", "rfc2544").stderr.split("free are")[1]
    ended = nicbench("init", "rfc2544", "--ports", "eth1,eth2")
    assert ended.status == 0
    assert "warning: eth2 is in use: it has the address 10.0.0.1/24" in ended.stderr


def test_a_test_frame_finds_the_two_ports(nicbench: Any) -> None:
    ended = nicbench("init", "datasheet", "--probe", "--full")
    assert ended.status == 0
    assert "eth1 <-> eth3: through a switch" in ended.stderr
    assert load(Path("datasheet.yaml")).report.layout == "datasheet"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rfc2544",), "free are eth1, eth3\n  next: write --ports A,B, or --probe"),
        (("rfc2544", "--ports", "eth1"), "'eth1' is not a pair of ports"),
        (("rfc2544", "--ports", "eth1,eth9"), "there is no port eth9\n  next: did you mean"),
        (("rfc2544", "--ports", "eth1,eth3", "--dut", "router"), "--macs: the MAC addresses of the router"),
        (("streams", "--server", "alice@nas"), "--server-port: the server's interface is missing"),
        (("editors", "--namespaces"), "--folder: the folder is missing"),
        (("rfc2544", "--namespaces"), "--namespaces: this option is for streams and editors, not for rfc2544"),
        (("streams", "--dut", "router"), "--dut: this option is for rfc2544 and datasheet, not for streams"),
        (("streams", "--namespaces", "--ports", "eth1,eth3"), "uses no port of any machine, and --ports is about one"),
        (("streams", "--namespaces", "--server", "nas"), "uses no port of any machine, and --server is about one"),
        (("streams", "--ports", "eth1,eth3", "--server", "nas"), "--ports is about two ports of this machine, and"),
        (("rfc2544", "--ports", "ffff:ff:1f.7,eth1"), "there is no PCI device ffff:ff:1f.7"),
        (("datasheet", "--csv", "none.csv"), "none.csv"),
        ((), "WHAT is missing\n  next: write one of rfc2544, streams, editors, datasheet"),
    ],
    ids=" ".join,
)
def test_what_is_missing_is_named_with_the_option_that_gives_it(
    arguments: tuple[str, ...], message: str, nicbench: Any
) -> None:
    ended = nicbench("init", *arguments)
    assert ended.status == 2
    assert message in ended.stderr


def test_a_server_and_a_client_by_ssh(nicbench: Any) -> None:
    arguments = ("--server", "alice@nas", "--server-port", "e0", "--client-port", "eth0", "--out", "mine.yaml")
    assert nicbench("init", "streams", *arguments).status == 0
    bench = load(Path("mine.yaml"))
    assert bench.hosts["server"].options.model_dump()["address"] == "nas"
    assert bench.ports["c0"].device == "eth0"  # workloads may use the address that it has


def test_editors_on_two_ports_of_this_machine(nicbench: Any) -> None:
    ended = nicbench("init", "editors", "--ports", "eth1,eth3", "--folder", "/srv/media", "--editors", "2")
    assert "sudo mkdir -p /srv/media/editor1 /srv/media/editor2" in ended.stderr
    assert load(Path("editors.yaml")).ports["s0"].device == "eth1"


def test_a_table_of_results_needs_two_commands_and_no_bench_file(nicbench: Any, tmp_path: Path) -> None:
    Path("mine.csv").write_text("Card,Frame size,Frame rate [Mpps]\nA,64,10\nA,128,9\nB,64,11\nB,128,9.5\n")
    ended = nicbench("init", "datasheet", "--csv", "mine.csv", "--title", "Two cards")
    first, second = ended.stdout.splitlines()
    assert first == "nicbench import mine.csv --method throughput --configuration Card --title 'Two cards'"
    assert second.startswith("nicbench report latest --layout datasheet")
    assert nicbench(*first.replace("'Two cards'", "Two").split()[1:]).status == 0
    assert nicbench("report", "latest", "--layout", "datasheet").status == 0
    (page,) = Path("runs").glob("*/report-datasheet.html")
    (chart,) = re.findall(r'<svg role="img".*?</svg>', page.read_text(), re.DOTALL)
    assert 'data-series="A|B"' in chart


def test_what_is_to_be_filled_in_is_told_with_what_to_do_and_nothing_is_promised(nicbench: Any) -> None:
    Path("de.csv").write_text("Karte;Frame size [bytes];Frame rate [kpps]\nA;64;37,200\n")
    ended = nicbench("init", "datasheet", "--csv", "de.csv")
    assert "to be filled in: frame rate `37,200` can be 37200 or 37.2" in ended.stderr
    assert "write --thousands comma if it is 37200, --decimal comma if it is 37.2" in ended.stderr
    assert "make the datasheet" not in ended.stderr


def test_a_column_of_numbers_is_never_taken_for_another(nicbench: Any) -> None:
    Path("j.csv").write_text("Frame size [bytes],Load [% of line rate],p99 [us],Jitter,Drop [Mpps]\n64,50,20,1.5,1\n")
    said = nicbench("init", "datasheet", "--csv", "j.csv").stdout
    assert "--ignore Jitter --ignore 'Drop [Mpps]'" in said
    assert "--column" not in said


def test_a_file_that_exists_is_never_replaced(nicbench: Any) -> None:
    ended = nicbench("init", "streams", "--namespaces", "--out", "bench.yaml")
    assert ended.status == 2
    assert "bench.yaml: there is such a file already\n  next: name another with --out" in ended.stderr


def test_questions_lead_to_the_same_file(nicbench: Any, answers: Any) -> None:
    left = answers("1", "y", "router", "02:00:00:00:00:01, 02:00:00:00:00:02")
    ended = nicbench("init")
    assert ended.status == 0, ended.stderr
    assert left == []
    assert "1  rfc2544" in ended.stderr
    assert load(Path("rfc2544.yaml")).dut.options.model_dump()["macs"][0] == "02:00:00:00:00:01"


def test_an_answer_that_is_none_is_asked_for_again(nicbench: Any, answers: Any) -> None:
    answers("9", "2", "namespaces")
    ended = nicbench("init")
    assert ended.status == 0, ended.stderr
    assert "a number from 1 to 4, please" in ended.stderr
    assert load(Path("streams.yaml")).lab is not None


def test_a_table_makes_a_datasheet_and_nothing_else(nicbench: Any) -> None:
    Path("t.csv").write_text("Frame size [bytes],Frame rate [Mpps]\n64,14.88\n")
    ended = nicbench("init", "rfc2544", "--csv", "t.csv")
    assert ended.status == 2
    assert "write `nicbench init datasheet --csv t.csv`" in ended.stderr
