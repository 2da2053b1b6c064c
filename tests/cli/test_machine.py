"""``nicbench doctor`` and ``inventory``, and what a bench file names and the machine lacks."""

from __future__ import annotations

import asyncio
import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import load
from nicbench.cli.main import main
from nicbench.core.errors import NotReadyError
from nicbench.doctor.base import Check, missing, ok, warning
from nicbench.stages.hosts import look_for_named, require_named

# ``doctor`` tells what is missing, with the command that mends it.

GOOD = ok("kernel", "6.1 has AF_XDP")
POOR = warning("governor", "powersave", "cpupower frequency-set -g performance")
BAD = missing("packages", "clang [14] is not installed", "apt-get install clang")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    def has(*checks: Check) -> None:
        async def diagnose() -> tuple[Check, ...]:
            return checks

        monkeypatch.setattr("nicbench.doctor.base.diagnose_this_machine", diagnose)

    return has


def test_a_lack_ends_with_3_and_names_the_command(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR, BAD)
    ended = nicbench("doctor")
    assert ended.status == 3
    assert "clang [14] is not installed" in ended.stdout
    assert "fix: apt-get install clang" in ended.stdout


def test_the_verdict_and_what_is_worst_stand_first(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR, BAD)
    shown = nicbench("doctor").stdout
    assert shown.startswith("1 missing: nicbench cannot run yet; 1 warning\n")
    assert shown.index("clang") < shown.index("powersave") < shown.index("AF_XDP")


def test_a_warning_is_no_lack(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR)
    ended = nicbench("doctor")
    assert ended.status == 0
    assert "this machine is ready; 1 warning\n" in ended.stdout


def test_the_checks_are_data(machine: Any, nicbench: Any) -> None:
    machine(GOOD, BAD)
    ended = nicbench("doctor", "--json")
    assert ended.status == 3
    document = json.loads(ended.stdout)
    assert document["ready"] is False
    assert [check["state"] for check in document["checks"]] == ["ok", "missing"]


def test_details_are_printed_for_those_who_ask(machine: Any, nicbench: Any) -> None:
    details = {"zero_copy": True, "redirect_target": False, "queues": None, "receive_metadata": ("hash", "VLAN tag")}
    machine(ok("XDP on eth1", "can carry it", details), GOOD)
    assert "zero copy" not in nicbench("doctor").stdout
    shown = nicbench("doctor", "--verbose").stdout
    assert "zero copy: yes\n" in shown
    assert "redirect target: no\n" in shown
    assert "queues: not known\n" in shown
    assert "receive metadata: hash, VLAN tag\n" in shown
    document = json.loads(nicbench("doctor", "--json").stdout)
    assert document["checks"][0]["details"]["receive_metadata"] == ["hash", "VLAN tag"]
    assert document["checks"][1]["details"] == {}


# ``nicbench inventory``: what this machine is, as text and as data, with its names or without.


def test_the_inventory_of_this_machine_is_printed_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory"]) == 0
    shown = capsys.readouterr().out
    for words in ("this machine", "Operating system", "Kernel", "Processors", "Every fact"):
        assert words in shown


def test_redacted_data_have_neither_this_machines_name_nor_its_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", "--json", "--redact"]) == 0
    shown = capsys.readouterr().out
    (facts,) = json.loads(shown)["hosts"].values()
    assert facts["kernel"]["release"] == platform.release()
    addresses = [path.read_text().strip() for path in Path("/sys/class/net").glob("*/address")]
    assert not [each for each in addresses if each and each in shown and each.strip("0:") and each.strip("f:")]


def test_the_hosts_of_a_bench_file_are_told_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text((Path(__file__).parents[2] / "examples" / "external.yaml").read_text())
    assert main(["inventory", str(bench), "--json"]) == 0
    assert "tester" in json.loads(capsys.readouterr().out)["hosts"]


def test_of_a_namespace_that_a_run_makes_the_machine_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text((Path(__file__).parents[2] / "examples" / "two-ports.yaml").read_text())
    assert main(["inventory", str(bench), "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert {facts["kernel"]["release"] for facts in (hosts["server"], hosts["client"])} == {platform.release()}


# ``validate`` and ``run --dry-run`` say which hardware of a bench file is not there, and what they looked at.

EXAMPLES = Path(__file__).parents[2] / "examples"
STREAMS = """\
nicbench: 1
title: t
hosts:
  server: {{kind: local}}
  client: {client}
ports:
  s0: {{host: server, device: {device}}}
  c0: {{host: client, device: e1}}
links: [c0 <-> s0]
dut: {{kind: server}}
tests: [{{name: a, method: stream}}]
"""


@pytest.mark.parametrize(
    ("example", "absent"),
    [
        ("esxi", "ports.t0: there is no PCI device 0000:03:00.0; `lspci -D` lists those that there are"),
        ("sriov-guest", "hosts.guest: there is no PCI device 0000:65:02.0; `lspci -D` lists those that there are"),
        ("two-ports", "ports.s0: there is no interface enp1s0f0; `ip link` lists those that there are"),
    ],
)
@pytest.mark.parametrize(("command", "status"), [(("validate",), 0), (("run", "--dry-run"), 3)])
def test_absent_hardware_is_named_and_a_run_would_be_refused(
    nicbench: Any, example: str, absent: str, command: tuple[str, ...], status: int
) -> None:
    ended = nicbench(*command, str(EXAMPLES / f"{example}.yaml"))
    assert ended.status == status
    assert f"\n  {absent}\n" in ended.stdout
    assert "missing on this machine, so a run would be refused" in ended.stdout


@pytest.mark.parametrize("command", [("validate",), ("run", "--dry-run")])
def test_absence_is_data_too(nicbench: Any, command: tuple[str, ...]) -> None:
    document = json.loads(nicbench(*command, str(EXAMPLES / "esxi.yaml"), "--json").stdout)
    assert [one["place"] for one in document["presence"]["absent"]] == ["ports.t0", "ports.t1"]
    assert document["presence"]["looked_for"] == ["PCI device 0000:03:00.0", "PCI device 0000:03:00.1"]


def test_what_is_there_is_not_absent_and_other_machines_are_not_spoken_to(nicbench: Any) -> None:
    Path("ssh.yaml").write_text(STREAMS.format(client="{kind: ssh, address: 192.0.2.1}", device="lo"))
    printed = nicbench("validate", "ssh.yaml").stdout
    assert "checked on this machine: interface lo\n" in printed
    assert "not checked:\n  hosts.client: another machine (ssh)\n" in printed
    assert printed.endswith("ssh.yaml is valid\n")


def test_a_namespace_that_is_not_there_is_named(nicbench: Any) -> None:
    Path("netns.yaml").write_text(STREAMS.format(client="{kind: netns, namespace: nb-nowhere}", device="lo"))
    printed = nicbench("validate", "netns.yaml").stdout
    assert "hosts.client: there is no network namespace nb-nowhere; make it (`ip netns add`)" in printed


async def test_a_machine_that_has_it_all_is_told_so(tmp_path: Path) -> None:
    for path in (
        *(f"sys/bus/pci/devices/0000:{card}" for card in ("65:02.0", "65:02.1", "b3:00.0", "b3:00.1")),
        *(f"sys/devices/system/cpu/cpu{number}" for number in (4, 5, 6)),
        *("sys/devices/system/node/node0", "sys/kernel/mm/hugepages/hugepages-1048576kB", "dev/kvm"),
    ):
        (tmp_path / path).mkdir(parents=True)
    found = await look_for_named(load(EXAMPLES / "sriov-guest.yaml"), tmp_path)
    ours = [str(one) for one in found.absent if "QEMU" not in one.what and "kernel" not in one.what]
    assert ours == ["hosts.guest: there is no CPU 7; `lscpu` lists those that there are"]
    assert "kind of huge pages of 1024 MiB" in found.looked_for


def test_a_lab_names_nothing_of_this_machine(nicbench: Any) -> None:
    assert "checked on this machine" not in nicbench("validate", "bench.yaml").stdout


async def test_an_image_that_was_not_pulled_is_named(tmp_path: Path) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text(STREAMS.format(client="{kind: container, root: /no/such/root}", device="lo"))
    found = await look_for_named(load(bench))
    assert "hosts.client: there is no folder /no/such/root; write the folder of a root file system" in map(
        str, found.absent
    )


POWER = """\
nicbench: 1
title: t
lab: {kind: veth}
dut: {kind: bridge}
tests: [{name: a, method: power}]
"""


async def test_a_machine_without_a_meter_is_named_before_a_run_of_power(tmp_path: Path) -> None:
    path, root = tmp_path / "power.yaml", tmp_path / "root"
    path.write_text(POWER)
    (absent,) = (await look_for_named(load(path), root)).absent
    assert str(absent) == (
        "test a: there is no meter of power (rapl, hwmon, ipmi, redfish); a virtual machine seldom has one; name the "
        "machine's management controller under `redfish`"
    )
    (root / "sys/class/powercap/intel-rapl:0").mkdir(parents=True)
    assert not (await look_for_named(load(path), root)).absent


def test_a_tool_of_a_test_that_is_not_installed_is_named_with_its_package(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = "nicbench: 1\ntitle: t\nlab: {kind: clients, ports: 1}\ndut: {kind: server}\n"
    Path("lab.yaml").write_text(f"{lab}tests: [{{name: a, method: stream, at_once: [port], workload: nuttcp}}]\n")
    assert "checked on this machine: program nuttcp" in nicbench("validate", "lab.yaml").stdout
    monkeypatch.setattr("nicbench.stages.hosts.shutil.which", lambda program: None)
    ended = nicbench("run", "--dry-run", "lab.yaml")
    assert ended.status == 3
    assert "test a: there is no program nuttcp; install it: apt-get install nuttcp" in ended.stdout


ROUTED = """\
nicbench: 1
title: t
lab: {kind: clients, ports: 2}
dut: {kind: DUT}
tests: [{name: a, method: stream}]
"""


def refused(text: str, tmp_path: Path) -> str:
    path = tmp_path / "bench.yaml"
    path.write_text(text)
    with pytest.raises(NotReadyError) as told:
        asyncio.run(require_named(load(path), tmp_path / "runtime"))
    return str(told.value)


@pytest.mark.parametrize(("dut", "program"), [("router", "ping"), ("firewall", "nft")])
def test_a_program_that_the_dut_needs_is_missed_before_anything_is_waited_for(
    dut: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else there(name) or "/bin/true")
    assert f"dut: there is no program {program}\n  next: apt-get install" in refused(
        ROUTED.replace("DUT", dut), tmp_path
    )


def test_what_other_runs_may_bring_back_is_left_to_whoever_holds_the_machine(tmp_path: Path) -> None:
    text = STREAMS.format(client="{kind: netns, namespace: nowhere}", device="nosuch0")
    assert "there is no network namespace nowhere (and 1 more" in refused(text, tmp_path)
    record = tmp_path / "runtime" / "another" / "undo.json"
    record.parent.mkdir(parents=True)
    record.touch()
    asyncio.run(require_named(load(tmp_path / "bench.yaml"), tmp_path / "runtime"))


def test_a_run_does_not_wait_for_what_can_never_be(nicbench: Any) -> None:
    ended = nicbench("run", str(EXAMPLES / "esxi.yaml"), "--wait", "10min")
    assert (ended.status, list(Path("runs").glob("*"))) == (3, [])
    assert "ports.t0: there is no PCI device 0000:03:00.0 (and 1 more" in ended.stderr
