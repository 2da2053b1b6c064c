"""A wire with faults: options to tc's words, what is refused, what is read back, and the undo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lab import DUT_MACS, TESTER_MACS
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import UNITS_REQUIRED
from nicbench.hosts.base import Completed
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts.netem import (
    Faults,
    Netem,
    NetemOptions,
    describe_faults,
    holds_frames_per_s,
    limit_frames,
    list_differences,
    netem_arguments,
)
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort
from nicbench.tuning.stack import UndoStack

DEFAULT = {"kind": "noqueue", "handle": "0:", "root": True, "refcnt": 2, "options": {}}


def faults(**written: Any) -> Faults:
    """As a bench file has them."""
    return Faults.model_validate(written, context={UNITS_REQUIRED: True})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"delay": "1 ms"}, "delay 1000us"),
        ({"delay": "1.5 us"}, "delay 1.5us"),
        ({"delay": "1 ms", "jitter": "100 us"}, "delay 1000us 100us"),
        ({"delay": "1 ms", "jitter": "100 us", "distribution": "pareto"}, "delay 1000us 100us distribution pareto"),
        ({"loss": "1 %"}, "loss random 1%"),
        ({"loss": "12 ppm"}, "loss random 0.0012%"),
        ({"duplicate": "0.25 %", "corrupt": "100 ppm"}, "duplicate 0.25% corrupt 0.01%"),
        ({"delay": "5 ms", "reorder": "2 %"}, "delay 5000us reorder 2% gap 1"),
        (
            {"delay": "5 ms", "reorder": "25 %", "reorder_correlation": "50 %", "reorder_gap": 5},
            "delay 5000us reorder 25% 50% gap 5",
        ),
        ({"rate": "10 Mb/s"}, "rate 10000000bit"),
    ],
)
def test_each_fault_is_said_in_the_words_of_tc(written: dict[str, Any], said: str) -> None:
    assert netem_arguments(faults(**written), 5000) == ("limit", "5000", *said.split())


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({"reorder": "1 %"}, "needs a `delay`"),
        ({"jitter": "1 ms"}, "needs a `delay`"),
        ({"delay": "1 ms", "jitter": "2 ms"}, "no frame can leave before it arrives"),
        ({"delay": "1 ms", "distribution": "normal"}, "needs a `jitter`"),
        ({"delay": "1 ms", "reorder_gap": 5}, "need a `reorder`"),
        ({"delay": 0.001}, "has no unit"),
        ({"loss": "101 %"}, "exceeds 1"),
        ({"seed": 1}, "Extra inputs"),
    ],
)
def test_what_netem_cannot_do_is_refused(written: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        faults(**written)


def test_as_many_frames_may_wait_as_the_link_brings_in_the_delay() -> None:
    # 14.88 million frames/s of 64 bytes, for 1 ms and a tenth more
    assert limit_frames(faults(delay="1 ms"), 10e9) == 16_370
    # four times the jitter is the furthest that a table reaches
    assert limit_frames(faults(delay="1 ms", jitter="250 us", distribution="normal"), 10e9) == 2 * 16_370 - 1
    assert limit_frames(faults(loss="1 %"), 10e9) == 1000
    assert limit_frames(faults(delay="1 s"), 100e9) == 100_000
    assert limit_frames(faults(delay="1 ms", rate="1 Mb/s"), 10e9) == 1000
    assert limit_frames(faults(delay="1 s", limit=7), 10e9) == 7


def test_the_load_that_the_queue_holds_is_told() -> None:
    assert holds_frames_per_s(faults(delay="1 s"), 100_000) == 100_000
    assert holds_frames_per_s(faults(loss="1 %"), 1000) is None


def test_what_is_injected_is_told_in_words() -> None:
    told = describe_faults(faults(delay="1 ms", jitter="100 us", loss="0.5 %", corrupt="100 ppm", rate="1 Gb/s"))
    assert told == {
        "delay": "1 ms",
        "jitter": "±100 µs, uniform",
        "loss": "0.5 %",
        "corrupt": "0.01 %",
        "rate": "1 Gb/s",
    }
    assert describe_faults(faults()) == {}


READ = json.loads((Path(__file__).parent / "golden" / "netem.json").read_text())


@pytest.mark.parametrize(
    ("number", "written", "limit"),
    [
        (0, {"delay": "1 ms"}, 1000),
        (1, {"delay": "1000.5 us", "jitter": "100 us", "distribution": "normal"}, 5000),
        (2, {"loss": "0.00123 %"}, 1000),
        (3, {"delay": "1 ms", "duplicate": "1 %", "reorder": "25 %"}, 1000),
        (4, {"corrupt": "0.5 %"}, 1000),
        (5, {"rate": "10 Mb/s"}, 1000),
    ],
)
def test_what_tc_prints_of_it_is_what_was_asked(number: int, written: dict[str, Any], limit: int) -> None:
    assert list_differences(faults(**written), limit, READ[number]["options"]) == []


def test_what_the_kernel_did_not_take_is_told() -> None:
    assert list_differences(faults(delay="2 ms", loss="1 %"), 1000, READ[0]["options"]) == [
        "delay: asked for 0.002, is 0.001",
        "loss: asked for 0.01, is 0",
    ]


class Kernel(FakeHost):
    """Its interfaces are up, and it keeps the root qdisc of each; ``has_netem`` is whether it knows the kind."""

    def __init__(self, *, has_netem: bool = True) -> None:
        super().__init__("dut")
        self.qdiscs: dict[str, dict[str, Any]] = {f"d{port}": DEFAULT for port in range(4)}
        self.has_netem = has_netem
        self.answer("ip -j link show dev", self._link)
        self.fail("ip link show dev nicbench-br", "does not exist")
        self.answer("tc -j qdisc show dev", lambda command: json.dumps([self.qdiscs[command[5]]]))
        self.answer("tc qdisc replace dev", self._replace)
        self.answer("tc qdisc del dev", self._delete)

    def _link(self, command: tuple[str, ...]) -> str:
        number = int(command[5].removeprefix("d"))
        mac = DUT_MACS[number % 2]
        return json.dumps([{"ifname": command[5], "ifindex": number + 2, "address": mac, "flags": ["UP"]}])

    def _replace(self, command: tuple[str, ...]) -> Completed:
        if not self.has_netem:
            return Completed(command, 2, "", "Error: Specified qdisc kind is unknown.\n")
        given = dict(zip(command[9::2], command[10::2], strict=False))
        delay = float(given.get("delay", "0us").removesuffix("us")) / 1e6
        read = {"limit": int(given["limit"]), "delay": {"delay": delay, "jitter": 0, "correlation": 0}}
        self.qdiscs[command[4]] = {"kind": "netem", "handle": "6e62:", "root": True, "options": read}
        return Completed(command, 0, "", "")

    def _delete(self, command: tuple[str, ...]) -> str:
        self.qdiscs[command[4]] = DEFAULT
        return ""


def bed_of(host: Kernel, pairs: int = 1) -> Testbed:
    ports = range(2 * pairs)
    return Testbed(
        tester=FakeHost("tester"),
        dut=host,
        tester_ports=tuple(TesterPort(f"t{i}", {}, f"t{i}", TESTER_MACS[i % 2]) for i in ports),
        dut_ports=tuple(DutPort(f"d{i}", f"d{i}", DUT_MACS[i % 2]) for i in ports),
        cores=CoreMap(worker=0, dut=(1,), housekeeping=(1,), shared=False),
        link_bits_per_s=10e9,
        link_is_nominal=True,
    )


def set_on(host: Kernel) -> list[str]:
    return [device for device, qdisc in host.qdiscs.items() if qdisc["kind"] == "netem"]


@pytest.mark.parametrize(
    ("ways", "at"), [("both", ["d0", "d1", "d2", "d3"]), ("forward", ["d1", "d3"]), ("reverse", ["d0", "d2"])]
)
async def test_faults_are_at_the_ports_by_which_frames_leave_and_gone_afterwards(
    ways: str, at: list[str], tmp_path: Path
) -> None:
    host = Kernel()
    changes = UndoStack("run", tmp_path, runtime=tmp_path / "runtime")
    dut = Netem(NetemOptions.model_validate({"delay": 0.001, "ways": ways}))
    await dut.up(bed_of(host, pairs=2), changes)
    assert set_on(host) == at
    assert host.commands.index(("modprobe", "-q", "sch_netem")) < host.commands.index(
        (
            "tc",
            "qdisc",
            "replace",
            "dev",
            at[0],
            "root",
            "handle",
            "6e62:",
            "netem",
            *netem_arguments(dut.options, 16_370),
        )
    )
    told = dut.disclosure()
    assert (told["injects"], told["at_ports"], told["queue_limit_frames"]) == ({"delay": "1 ms"}, at, 16_370)
    assert round(told["queue_holds_up_to_frames_per_s"]) == 16_370_000
    # What the fake cannot undo is the bridge, which it never had.
    await changes.undo_all()
    assert set_on(host) == []


async def test_without_faults_it_is_a_bridge_and_needs_no_netem(tmp_path: Path) -> None:
    host = Kernel(has_netem=False)
    dut = Netem(NetemOptions())
    await dut.up(bed_of(host), UndoStack("run", tmp_path, runtime=tmp_path / "runtime"))
    assert set_on(host) == []
    assert (dut.disclosure()["injects"], dut.disclosure()["name"]) == ("nothing", "Linux bridge")


async def test_a_kernel_without_netem_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    host = Kernel(has_netem=False)
    with pytest.raises(NotReadyError, match="no network emulator") as caught:
        await Netem(NetemOptions(loss=0.01)).up(bed_of(host), UndoStack("run", tmp_path, runtime=tmp_path / "runtime"))
    assert "kind: vm" in (caught.value.next_step or "")
    assert not any(command[:3] == ("ip", "link", "add") for command in host.commands)


async def test_a_qdisc_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    host = Kernel()
    host.qdiscs["d0"] = {"kind": "htb", "handle": "1:", "root": True, "options": {}}
    with pytest.raises(NotReadyError, match="somebody set a htb") as caught:
        await Netem(NetemOptions(loss=0.01)).up(bed_of(host), UndoStack("run", tmp_path, runtime=tmp_path / "runtime"))
    assert "tc qdisc del dev d0 root" in (caught.value.next_step or "")
    assert host.qdiscs["d0"]["kind"] == "htb"


async def test_a_kernel_that_took_something_else_is_not_measured(tmp_path: Path) -> None:
    host = Kernel()  # its netem has no loss
    with pytest.raises(HostError, match=r"loss: asked for 0\.01, is 0"):
        await Netem(NetemOptions(loss=0.01)).up(bed_of(host), UndoStack("run", tmp_path, runtime=tmp_path / "runtime"))


def test_one_way_is_of_a_pair_of_ports() -> None:
    dut = Netem(NetemOptions(loss=0.01, ways="forward"))
    assert dut.refusal(4, Pattern.ONE_TO_ONE) is None
    refused = dut.refusal(4, Pattern.FULL_MESH)
    assert "full-mesh" in refused.message
