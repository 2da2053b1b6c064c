"""The driver that a run chooses where its bench file names none, and what it tells of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.bench_file import BenchFile, load, parse
from nicbench.core.events import Bus, DriverChosen, TrialFinished
from nicbench.core.plan import Plan
from nicbench.hosts.base import Host
from nicbench.stages import tester
from nicbench.stages.tester import foretell_driver, settle_driver
from nicbench.store.folder import RunFolder
from nicbench.system.xdp.abilities import Lack

from .lab_bench import TOLERANT, make_folder, run_async, short
from .simulated_bench import make_folder as make_simulated
from .simulated_bench import run_whole

GOLDEN = Path(__file__).parents[1] / "golden" / "interfaces"
LAB = """
nicbench: 1
title: Chosen
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
{more}
tests:
  - {{name: quick, method: throughput, frame_bytes: [{size}]}}
"""
WIRED = """
nicbench: 1
title: Chosen
hosts: {{tester: {{kind: local}}, d: {{kind: netns, namespace: d}}}}
ports:
  t0: {{host: tester, device: up0{t0}}}
  t1: {{host: tester, {t1}}}
  d0: {{host: d, device: e0}}
  d1: {{host: d, device: e1}}
links: [t0 <-> d0, t1 <-> d1]
dut: {{kind: external}}
tests:
  - {{name: quick, method: throughput, frame_bytes: [64]}}
"""


TWO_SIZES = "traffic: {mixes: {two: {smallest: 128, largest: 512, step: 128}}}"


def lab(more: str = "", size: str = "64") -> BenchFile:
    return parse(LAB.format(more=more, size=size).encode(), Path("bench.yaml"))


def wired(t0: str = "", t1: str = "device: pup0") -> BenchFile:
    return parse(WIRED.format(t0=t0, t1=t1).encode(), Path("bench.yaml"))


@pytest.mark.parametrize(
    ("bench", "told"),
    [
        (lab(), "xdp where the kernel and the interfaces can, else net_af_xdp"),
        (lab(size="imix"), "xdp where the kernel and the interfaces can"),
        (
            lab("traffic: {vxlan: {vni: 7}, mixes: {two: {smallest: 128, largest: 512, step: 128}}}", size="two"),
            "net_af_xdp, because the test quick (throughput) needs frames of several sizes in tunnels",
        ),
        (lab("tester: {capture: {around_loss: 4}}"), "xdp where the kernel and the interfaces can"),
        (
            lab("configurations: {a: , b: {traffic: {vxlan: {vni: 7}}}}\n" + TWO_SIZES, size="two"),
            "in the configuration b the test quick (throughput) needs frames of several sizes in tunnels",
        ),
        (wired(), "xdp where the kernel"),
        (wired(t1="address: 0000:03:00.1"), "the port t1 is driven by DPDK, and the kernel makes the frames of all"),
        (wired(t1="device: pup0, driver: net_af_packet"), "the port t1 has `driver: net_af_packet`"),
        # Where nothing is left open nothing is told.
        (lab("tester: {driver: net_af_xdp}"), None),
        (lab("tester: {driver: xdp}"), None),
        (wired(t0=", driver: xdp", t1="device: pup0, driver: xdp"), None),
        (wired(t0=", driver: net_pcap", t1="vdev: net_null0"), None),
    ],
)
def test_what_the_bench_file_alone_tells_of_the_driver(bench: BenchFile, told: str | None) -> None:
    found = foretell_driver(bench)
    assert found == told if told is None or found is None else told in found


def interfaces(*, driver: str = "veth") -> FakeHost:
    """A machine with recorded interfaces, all of this driver, whose kernel makes frames."""
    flags = {name: {"features": 0b1100111 if driver == "veth" else 0b11} for name in ("up0", "pup0")}
    host = FakeHost("tester", files={"/proc/self/status": "CapEff:\t000001ffffffffff\n"})
    host.answer("ip -d -j link show", (GOLDEN / "link.json").read_text())
    for command, name in (
        ("address show", "address"),
        ("-4 route show table all", "route4"),
        ("-6 route show table all", "route6"),
    ):
        host.answer(f"ip -j {command}", (GOLDEN / f"{name}.json").read_text())
    host.answer("ethtool -i", f"driver: {driver}\n")
    host.answer((sys.executable, "-I", "-"), json.dumps(flags))
    return host


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """The ports that the engine is asked to open, which it can."""
    asked = []

    async def refuse_nothing(_: Host, ports: list[dict[str, Any]], *_more: object) -> str | None:
        asked.append(ports)
        return None

    async def lack_nothing(_: Host) -> Lack | None:
        return None

    monkeypatch.setattr(tester, "refusal_of_ports", refuse_nothing)
    monkeypatch.setattr(tester, "kernel_lacks", lack_nothing)
    return asked


def settle(
    bench: BenchFile, folder: RunFolder, hosts: Mapping[str, Host] | None = None
) -> tuple[str | None, str | None, list[Any]]:
    """The driver and the reason, and what was published."""
    told = []
    bus = Bus()
    bus.subscribe(told.append)
    settled, reason = asyncio.run(settle_driver(bench, bench, hosts or {}, folder, bus))
    return settled.tester.options.model_dump()["driver"], reason, told


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "nicbench: 1\n", "chosen")


def test_a_kernel_that_takes_the_programs_has_the_tester(folder: RunFolder, tried: list[list[dict[str, Any]]]) -> None:
    driver, reason, told = settle(lab(), folder)
    assert (driver, reason) == ("xdp", "frames are made and judged in the kernel")
    assert told == [DriverChosen(driver="xdp", reason=str(reason))]
    assert len(tried) == 1  # a pair of veths, whatever the number of ports


def test_programs_that_the_kernel_does_not_take_are_a_reason(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, tried: list[list[dict[str, Any]]]
) -> None:
    async def refuse(*_: object) -> str | None:
        return "the kernel did not take the receiving program: Argument list too long"

    monkeypatch.setattr(tester, "refusal_of_ports", refuse)
    driver, reason, _ = settle(lab(), folder)
    assert driver == "net_af_xdp"
    assert "Argument list too long" in str(reason)
    assert not tried


def test_what_is_named_is_neither_tried_nor_changed(folder: RunFolder, tried: list[list[dict[str, Any]]]) -> None:
    for named in ("net_af_xdp", "xdp", "net_af_packet"):
        assert settle(lab(f"tester: {{driver: {named}}}"), folder) == (named, None, [])
    assert not tried


@pytest.mark.parametrize(
    ("driver", "chosen", "because"),
    [
        ("veth", "xdp", "in the kernel"),
        ("igc", "xdp", "in the kernel"),  # a redirect target while the tester's own program is attached
        ("mlx4_core", "net_af_xdp", "takes no frames that XDP redirects to up0"),
    ],
)
def test_a_real_interface_is_taken_where_its_driver_can(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, tried: list[Any], driver: str, chosen: str, because: str
) -> None:
    found, reason, _ = settle(wired(), folder, {"tester": interfaces(driver=driver)})
    assert found == chosen
    assert because in str(reason)
    assert [port["kind"] for port in tried[0]] == ["xdp" if chosen == "xdp" else "af_xdp"] * 2


def test_interfaces_that_no_socket_of_af_xdp_takes_are_driven_by_packet_sockets(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, tried: list[Any]
) -> None:
    async def refuse(_: Host, ports: list[dict[str, Any]], *_more: object) -> str | None:
        return None if ports[0]["kind"] == "af_packet" else "setting up its receive queue: Invalid argument"

    monkeypatch.setattr(tester, "refusal_of_ports", refuse)
    driver, reason, _ = settle(wired(), folder, {"tester": interfaces()})
    assert driver == "net_af_packet"
    assert "net_af_xdp cannot: setting up its receive queue" in str(reason)


@pytest.mark.parametrize(("size", "chosen"), [(3000, "xdp"), (3500, "net_af_xdp"), (9018, "net_af_packet")])
def test_frames_have_a_driver_with_room_for_them(folder: RunFolder, tried: list[Any], size: int, chosen: str) -> None:
    bench = parse(WIRED.format(t0="", t1="device: pup0").replace("[64]", f"[{size}]").encode(), Path("bench.yaml"))
    assert settle(bench, folder, {"tester": interfaces()})[0] == chosen


def test_an_interface_that_nothing_takes_is_left_to_the_usual_driver_which_says_why(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, tried: list[Any]
) -> None:
    async def refuse(*_: object) -> str | None:
        return "it is down"

    monkeypatch.setattr(tester, "refusal_of_ports", refuse)
    assert settle(wired(), folder, {"tester": interfaces()})[0] == "net_af_xdp"


def test_nothing_is_tried_on_an_interface_that_somebody_uses(folder: RunFolder, tried: list[Any]) -> None:
    bench = wired(t1="device: way0")
    driver, reason, _ = settle(bench, folder, {"tester": interfaces()})
    assert driver == "net_af_xdp"
    assert "way0" in str(reason)
    assert not tried


@pytest.mark.slow
def test_a_resumed_run_keeps_its_driver_also_where_nobody_had_chosen_it(tmp_path: Path, tried: list[Any]) -> None:
    folder = make_simulated(tmp_path)
    run_whole(folder)
    # As runs were before they chose: the plan alone tells.
    assert settle(lab(), folder)[:2] == ("net_af_xdp", "the run was begun with it")
    plan = folder.plan()
    assert isinstance(plan, Plan)
    options = {**plan.tester["options"], "driver": "net_pcap"}
    folder.write_json("plan.json", plan.replace(tester={**plan.tester, "options": options}))
    assert settle(lab(), folder)[0] == "net_pcap"
    assert not tried


@pytest.mark.slow
def test_a_resumed_run_keeps_the_driver_that_its_samples_were_made_with(tmp_path: Path, tried: list[Any]) -> None:
    folder = make_simulated(tmp_path)
    run_whole(folder)
    trials = [event for event in folder.journal.events() if isinstance(event, TrialFinished)]

    moved = RunFolder.create(tmp_path, "nicbench: 1\n", "moved")
    moved.journal.append(DriverChosen(driver="xdp", reason="the first session, which measured nothing"))
    assert settle(lab(), moved)[0] == "xdp"
    assert len(tried) == 1  # nothing was measured, so it is chosen anew
    moved.journal.append(DriverChosen(driver="net_af_xdp", reason="the second, on another kernel"))
    moved.journal.append(trials[0])
    assert settle(lab(), moved) == ("net_af_xdp", "the second, on another kernel", [])
    assert len(tried) == 1


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_a_lab_without_a_driver_is_measured_by_the_kernel_and_says_so(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, short("{kind: kernel-forward}", more=TOLERANT, trials=2, duration="100 ms"))
    asyncio.run(run_async(folder))
    (chosen,) = [event for event in folder.journal.events() if isinstance(event, DriverChosen)]
    plan = folder.plan()
    assert chosen.driver == "xdp"
    assert (plan.tester["options"]["driver"], plan.tester["driver_because"]) == ("xdp", chosen.reason)
    assert "dpdk" not in plan.tester["engine"]
    assert load(folder.path / "bench.yaml").tester_kind().leaves_driver
