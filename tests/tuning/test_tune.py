"""Settings: read, applied, verified and undone; refused with item, host, interface, asked and got."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from tests.fakes import FakeHost

from nicbench.core import registry
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.core.plan import Outcome, Values
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.tuning.items.base import DeviceOptions, Item, NoOptions, Phase
from nicbench.tuning.items.steering import PacketSteering, PacketSteeringOptions
from nicbench.tuning.restore import restore
from nicbench.tuning.setting import CannotSetError, Place, values_in_words
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import (
    Part,
    PlacedRequest,
    TuningRequest,
    find_strayed,
    look_again,
    place_requests,
    preview,
    tune,
)


class RingOptions(DeviceOptions):
    rx: int = 4096


class Rings(Item):
    """Files of a fake machine: ``/rings/DEVICE`` holds ``rx tx``; the largest ring has 8192 places."""

    kind = "rings"
    Options = RingOptions
    options: RingOptions
    scope = "device"
    phase = Phase.RINGS
    alone = "rx"

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file(f"/rings/{place.device}")
        if text is None:
            raise CannotSetError("the driver has no rings")
        rx, tx = text.split()
        return {"rx": int(rx), "tx": int(tx)}

    def target_values(self, now: Values) -> Values:
        if self.options.rx > 8192:
            raise CannotSetError(f"rx {self.options.rx} is more than the driver's 8192")
        return {"rx": self.options.rx}

    async def write(self, place: Place, values: Values) -> None:
        now = await self.read(place) | values
        await place.host.write_file(f"/rings/{place.device}", f"{now['rx']} {now['tx']}")


class Clock(Item):
    """Of the machine; only checked."""

    kind = "clock"
    Options = NoOptions
    scope = "machine"
    phase = Phase.MACHINE
    only_checks = True

    async def read(self, place: Place) -> Values:
        return {"source": await place.host.read_file("/clock")}

    def target_values(self, now: Values) -> Values:
        return {"source": "tsc"}


@pytest.fixture(autouse=True)
def known_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The undo finds these two where it looks for items."""
    kinds = {"rings": Rings, "clock": Clock}
    monkeypatch.setattr("nicbench.tuning.undo.files.find", lambda package, base: kinds)
    assert registry.find


@pytest.fixture
def host() -> FakeHost:
    return FakeHost("dut", files={"/rings/d0": "512 512", "/rings/d1": "1024 512", "/clock": "hpet"})


@pytest.fixture
def stack(tmp_path: Path) -> UndoStack:
    return UndoStack("run", None, tmp_path)


def rings(
    host: Host, rx: int = 4096, devices: tuple[str, ...] = ("d0", "d1"), **more: str
) -> tuple[PlacedRequest, ...]:
    wish = TuningRequest("dut", Rings, RingOptions(rx=rx), **more)
    return place_requests([wish], [Part("dut", host, devices)])


async def test_a_setting_is_applied_at_each_interface_of_the_test_and_undone(stack: UndoStack, host: FakeHost) -> None:
    every = rings(host)
    rows = await tune(stack, every)
    assert host.files["/rings/d0"] == host.files["/rings/d1"] == "4096 512"
    assert [(row.device, row.outcome, row.before, row.asked) for row in rows] == [
        ("d0", Outcome.CHANGED, {"rx": 512, "tx": 512}, {"rx": 4096}),
        ("d1", Outcome.CHANGED, {"rx": 1024, "tx": 512}, {"rx": 4096}),
    ]
    assert [row.during for row in await look_again(every, rows, at_end=False)] == [{"rx": 4096}, {"rx": 4096}]
    assert await stack.undo_all() == []
    assert host.files["/rings/d0"] == "512 512"
    assert host.files["/rings/d1"] == "1024 512"
    assert [entry.after for entry in stack.entries] == [{"rx": 1024}, {"rx": 512}][::-1]


async def test_what_is_so_already_is_neither_changed_nor_undone(stack: UndoStack, host: FakeHost) -> None:
    rows = await tune(stack, rings(host, rx=512, devices=("d0",)))
    assert [row.outcome for row in rows] == [Outcome.ALREADY]
    assert host.writes == []
    assert stack.entries == ()


async def test_another_process_undoes_it_twice_with_the_same_end(
    stack: UndoStack, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tune(stack, rings(host))
    monkeypatch.setattr("nicbench.hosts.owner.Owner.is_alive", False)
    first = await restore("run", tmp_path, lambda spec: host)
    assert first == ["run: undid 2 changes that it had left"]
    assert host.files["/rings/d1"] == "1024 512"
    assert await restore("run", tmp_path, lambda spec: host) == ["run: nothing to undo"]
    assert host.files["/rings/d0"] == "512 512"


async def test_a_value_that_somebody_changed_since_is_left_and_reported(stack: UndoStack, host: FakeHost) -> None:
    await tune(stack, rings(host))
    host.files["/rings/d0"] = "256 512"
    troubles = await stack.undo_all()
    assert host.files["/rings/d0"] == "256 512"
    assert host.files["/rings/d1"] == "1024 512"
    assert troubles == [
        "dut, d0: rings was left at rx 256: somebody changed it since we set rx 4096; before the run it was rx 512"
    ]


async def test_what_a_machine_makes_of_a_value_is_an_error_and_put_back(stack: UndoStack, host: FakeHost) -> None:
    host.write_filter = lambda path, text: text.replace("4000", "3968")
    with pytest.raises(NotReadyError) as caught:
        await tune(stack, rings(host, rx=4000, devices=("d0",)))
    assert "rings (dut, d0): asked for rx 4000, got rx 3968" in caught.value.message
    assert host.files["/rings/d0"] == "512 512"
    assert await stack.undo_all() == []


async def test_everything_that_cannot_be_set_is_told_before_anything_is_changed(
    stack: UndoStack, host: FakeHost
) -> None:
    wishes = [
        TuningRequest("dut", Rings, RingOptions(rx=9000)),
        TuningRequest("dut", Rings, RingOptions(devices=("d7",))),
    ]
    every = place_requests(wishes, [Part("dut", host, ("d0",))])
    with pytest.raises(NotReadyError) as caught:
        await tune(stack, every)
    assert "rings (dut, d0): rx 9000 is more than the driver's 8192" in caught.value.message
    assert "rings (dut, d7): the driver has no rings" in caught.value.message
    assert "`rings`" in (caught.value.next_step or "")
    assert host.writes == []


async def test_an_item_of_a_profile_that_a_machine_lacks_is_skipped(stack: UndoStack, host: FakeHost) -> None:
    rows = await tune(stack, rings(host, devices=("d0", "d7"), profile="throughput"))
    assert [(row.outcome, row.reason) for row in rows] == [
        (Outcome.CHANGED, None),
        (Outcome.SKIPPED, "the driver has no rings"),
    ]
    assert {row.source for row in rows} == {"profile throughput"}


async def test_an_item_of_interfaces_needs_one(stack: UndoStack, host: FakeHost) -> None:
    with pytest.raises(NotReadyError, match="the test has no interface there; name some with `devices`"):
        await tune(stack, rings(host, devices=()))


async def test_what_is_only_checked_is_told_and_never_changed(stack: UndoStack, host: FakeHost) -> None:
    every = place_requests([TuningRequest("all", Clock, NoOptions())], [Part("tester", host, ())])
    (row,) = await tune(stack, every)
    assert (row.outcome, row.before, row.asked) == (Outcome.NOT_MET, {"source": "hpet"}, {"source": "tsc"})
    host.files["/clock"] = "tsc"
    assert (await preview(every[0])).outcome is Outcome.MET
    assert host.writes == []


async def test_a_setting_that_strays_during_the_test_is_told(stack: UndoStack, host: FakeHost) -> None:
    every = rings(host, devices=("d0",))
    rows = await look_again(every, await tune(stack, every), at_end=False)
    assert find_strayed(every, rows, at_end=False) == []
    host.files["/rings/d0"] = "2048 512"
    rows = await look_again(every, rows, at_end=True)
    assert find_strayed(every, rows, at_end=True) == [
        "dut, d0: rings was rx 4096 and is rx 2048 at the end of the test: something changed it"
    ]


async def test_another_writing_of_the_same_value_has_not_strayed(stack: UndoStack, host: FakeHost) -> None:
    masks = "/sys/class/net/d0/queues/rx-0/rps_cpus"
    host.files[masks] = "0\n"
    host.answer("sh -c", lambda _: f"{masks}:{host.files[masks].strip()}\n")
    request = TuningRequest("dut", PacketSteering, PacketSteeringOptions.model_validate({"receive": "1,3"}))
    every = place_requests([request], [Part("dut", host, ("d0",))])
    rows = await tune(stack, every)
    host.files[masks] = "00000000,0000000a\n"
    rows = await look_again(every, rows, at_end=False)
    assert rows[0].during == {"rx-0/rps_cpus": "00000000,0000000a"}
    assert rows[0].strayed == ()
    assert find_strayed(every, rows, at_end=False) == []
    host.files[masks] = "00000000,00000002\n"
    rows = await look_again(every, rows, at_end=False)
    assert rows[0].strayed == ("rx-0/rps_cpus",)
    assert "is rx-0/rps_cpus 00000000,00000002" in find_strayed(every, rows, at_end=False)[0]


async def test_what_is_not_understood_refuses_the_run_and_keeps_the_undo(stack: UndoStack, host: FakeHost) -> None:
    host.files["/rings/d0"] = "n/a"
    with pytest.raises(NotReadyError, match="rings is not understood: ValueError"):
        await tune(stack, rings(host, devices=("d0",)))
    await tune(stack, rings(host, devices=("d1",)))
    host.files["/rings/d1"] = "n/a"
    assert "rings is not understood" in (await stack.undo_all())[0]
    host.files["/rings/d1"] = "4096 512"
    assert await stack.undo_all() == []
    assert host.files["/rings/d1"] == "1024 512"


def test_the_nearer_and_the_written_wins() -> None:
    host = FakeHost("router")

    def wished(*wishes: TuningRequest) -> list[tuple[str | None, int]]:
        found = place_requests(wishes, [Part("dut", host, ("d0",))])
        return [(one.request.profile, one.request.options.model_dump()["rx"]) for one in found]

    of_profile = TuningRequest("dut", Rings, RingOptions(rx=1), "throughput")
    for_all = TuningRequest("all", Rings, RingOptions(rx=2))
    by_name = TuningRequest("router", Rings, RingOptions(rx=3))
    assert wished(of_profile) == [("throughput", 1)]
    assert wished(for_all, of_profile) == [(None, 2)]
    assert wished(by_name, for_all, of_profile) == [(None, 3)]
    assert wished(TuningRequest("tester", Rings, RingOptions())) == []
    several = [TuningRequest("dut", Rings, RingOptions(rx=n, devices=(f"d{n}",))) for n in (1, 2)]
    assert wished(*several) == [(None, 1), (None, 2)]


def test_a_setting_of_the_machine_is_set_once_for_all_its_namespaces() -> None:
    machine = LocalHost()
    parts = [Part(role, NetnsHost(machine, role), ()) for role in ("tester", "dut")]
    (one,) = place_requests([TuningRequest("all", Clock, NoOptions())], parts)
    assert one.place.host is machine


class _Two(Clock):
    Options: ClassVar = RingOptions


def test_two_roles_on_one_machine_cannot_contradict_each_other() -> None:
    machine = LocalHost()
    parts = [Part(role, NetnsHost(machine, role), ()) for role in ("tester", "dut")]
    wishes = [TuningRequest("tester", _Two, RingOptions(rx=1)), TuningRequest("dut", _Two, RingOptions(rx=2))]
    with pytest.raises(UsageError, match="clock is asked for in two ways, by 'tester' and 'dut'"):
        place_requests(wishes, parts)


def test_items_come_in_the_order_of_their_phases() -> None:
    wishes = [TuningRequest("dut", Rings, RingOptions()), TuningRequest("dut", Clock, NoOptions())]
    assert [one.item.kind for one in place_requests(wishes, [Part("dut", FakeHost("d"), ("d0",))])] == [
        "clock",
        "rings",
    ]


def test_values_are_shown_in_a_line() -> None:
    assert values_in_words({"rx": 4096, "mode": "on", "x": None}) == "rx 4096, mode on, x null"
    assert values_in_words(None) == "-"
