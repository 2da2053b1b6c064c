"""Which machines a run takes for itself, and what it does where others have them. No machine is locked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.bench_file import BenchFile, load
from nicbench.core.errors import BusyError
from nicbench.core.events import Bus, Event, Waiting
from nicbench.hosts.base import Host
from nicbench.hosts.owner import boot_id
from nicbench.stages import machine as sharing
from nicbench.stages.machine import Claim, claims, hold_machines
from nicbench.tuning.lock import Place

BENCH = """\
nicbench: 1
title: Two machines
hosts:
  tester: {kind: local}
  far: {kind: netns, namespace: far}
ports:
  t0: {host: tester, device: eth0}
  d0: {host: far, device: eth1}
links: [t0 <-> d0]
dut: DUT
tests: [{name: a, method: throughput}]
"""


def test_of_a_machine_that_is_only_connected_to_its_ports_are_claimed(tmp_path: Path) -> None:
    (claim,) = _claims(_bench(tmp_path, "{kind: external}"))
    assert (claim.whole, claim.devices) == (False, {"eth1"})


def test_a_machine_that_is_tuned_is_claimed_whole(tmp_path: Path) -> None:
    tuned = "tuning: {dut: {sysctls: {net.core.netdev_max_backlog: 2000}}}\n"
    (claim,) = _claims(_bench(tmp_path, "{kind: external}", tuned))
    assert claim.whole


def test_a_machine_that_is_set_up_as_the_dut_is_claimed_whole(tmp_path: Path) -> None:
    (claim,) = _claims(_bench(tmp_path, "{kind: kernel-forward}"))
    assert claim.whole


def test_this_machine_needs_no_claim_its_own_lock_is_taken(tmp_path: Path) -> None:
    assert claims(_bench(tmp_path, "{kind: external}")) == ()


async def test_hosts_on_one_machine_are_taken_once_and_this_machine_by_another_way_not_at_all() -> None:
    one, two, here = _machine("one", "boot-x"), _machine("two", "boot-x"), _machine("here", boot_id())
    one.answer("sh", "0000:03:00.0\n")
    found = await sharing._group_by_machine(
        (Claim(one, devices={"eth0"}), Claim(two, addresses={"0000:04:00.0"}), Claim(here, whole=True))
    )
    assert found == {"boot-x": (one, ("0000:03:00.0", "0000:04:00.0"))}

    found = await sharing._group_by_machine((Claim(one, devices={"eth0"}), Claim(two, whole=True)))
    assert found == {"boot-x": (one, None)}


@pytest.fixture(autouse=True)
def _a_queue_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sharing, "Place", lambda run_id: Place(run_id, tmp_path / "runtime"))


async def test_a_machine_that_is_in_use_is_waited_for_and_its_holder_named_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes, events = _bus()
    attempts = _busy_for(monkeypatch, times=3)
    async with hold_machines("run", (), notes, wait_s=60.0):
        assert attempts["held"] == 1  # what was held in vain was given back each time

    assert attempts == {"number": 4, "held": 0}
    assert [event.text for event in events if isinstance(event, Waiting)] == [
        "far: in use: run other of jane@lab holds it since 12:00"
    ]


async def test_without_waiting_a_machine_that_is_in_use_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = _busy_for(monkeypatch, times=3)
    with pytest.raises(BusyError, match="run other of jane@lab"):
        async with hold_machines("run", (), Bus()):
            pass
    assert attempts == {"number": 1, "held": 0}


async def test_what_fails_while_all_is_held_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = _busy_for(monkeypatch, times=0)
    with pytest.raises(BusyError, match="of the run itself"):
        async with hold_machines("run", (), Bus(), wait_s=60.0):
            raise BusyError("of the run itself")
    assert attempts == {"number": 1, "held": 0}


def test_a_wait_that_is_no_duration_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from nicbench.cli.main import main

    assert main(["run", "bench.yaml", "--wait", "soon"]) == 2
    assert "90s or 10min" in capsys.readouterr().err


def _bench(folder: Path, dut: str, more: str = "") -> BenchFile:
    path = folder / "bench.yaml"
    path.write_text(BENCH.replace("DUT", dut) + more)
    return load(path)


def _claims(bench: BenchFile) -> tuple[Claim, ...]:
    """As if the host `far` were on another machine."""

    def make(bench: BenchFile, name: str) -> Host:
        return FakeHost(name) if name == "far" else sharing._host(bench, name)

    return claims(bench, make)


def _machine(name: str, boot: str) -> FakeHost:
    return FakeHost(name, {"/proc/sys/kernel/random/boot_id": f"{boot}\n"})


def _bus() -> tuple[Bus, list[Event]]:
    bus, events = Bus(), []
    bus.subscribe(events.append)
    return bus, events


def _busy_for(monkeypatch: pytest.MonkeyPatch, times: int) -> dict[str, int]:
    """Each of the first attempts takes something and then finds somebody else."""
    attempts = {"number": 0, "held": 0}

    @asynccontextmanager
    async def something() -> AsyncIterator[None]:
        attempts["held"] += 1
        try:
            yield
        finally:
            attempts["held"] -= 1

    async def take_all(_run: str, _wanted: Any, _bus: Bus, stack: Any) -> None:
        attempts["number"] += 1
        await stack.enter_async_context(something())
        if attempts["number"] <= times:
            minute = attempts["number"] - 1
            message = f"in use: run other of jane@lab holds it since 12:0{minute}"
            raise BusyError(message, place="far")
        await asyncio.sleep(0)

    monkeypatch.setattr(sharing, "_take_all", take_all)
    monkeypatch.setattr(sharing, "_try_again_s", lambda: 0.0)
    return attempts
