"""``demo`` runs what comes with nicbench: with root in a lab of namespaces, without it a simulated device."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file.load import parse
from nicbench.cli.commands.demo import WIDTH, known_device, known_words, screen, with_device
from nicbench.core import shipped
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary, Value
from nicbench.core.shipped import example
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.stages import tester


def test_without_root_it_names_the_demo_that_needs_none(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ended = nicbench("demo")
    assert ended.status == 3
    assert "next: sudo nicbench demo, or without root: nicbench demo --simulated" in ended.stderr


@pytest.mark.parametrize("example", ["kernel-forward", "vpp"])
def test_a_simulated_device_is_measured_in_the_place_of_no_other_example(example: str, nicbench: Any) -> None:
    ended = nicbench("demo", "--simulated", example)
    assert ended.status == 2
    assert f"{example}: --simulated measures no other example" in ended.stderr


@pytest.mark.parametrize(("arguments", "name"), [(("policer",), "policer"), (("--simulated",), "simulated")])
def test_it_runs_an_example_into_the_folder_of_runs(
    arguments: tuple[str, ...],
    name: str,
    nicbench: Any,
    run_is: Any,
    finished_run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_is(finished_run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ended = nicbench("demo", *arguments, "--runs", "mine")
    assert ended.status == 0
    assert f"examples/{name}.yaml" in ended.stderr
    assert "copy the bench file named above" in ended.stderr
    assert "`nicbench init` writes a bench file" in ended.stderr
    (folder,) = Path("mine").iterdir()
    assert (folder / "bench.yaml").read_text() == shipped.example(name).read_text()


def test_without_a_name_the_known_device_gets_a_tenth_of_what_a_flood_showed(
    nicbench: Any, run_is: Any, finished_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def come_back(*_: object) -> float:
        return 61_234.5

    run_is(finished_run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tester, "flood", come_back)
    ended = nicbench("demo", "--runs", "mine")
    assert ended.status == 0
    assert "a flood came back at 61.23 kpps: the known device passes 6.100 kpps and 122 frames at once" in ended.stderr
    (folder,) = Path("mine").iterdir()
    assert "rate: 6100 pps" in (folder / "bench.yaml").read_text()


def test_examples_are_those_that_the_installation_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "examples"
    own.mkdir()
    (own / "simulated.yaml").write_text("mine\n")
    monkeypatch.setattr(shipped, "shipped", lambda name: tmp_path / name)
    assert shipped.example("simulated.yaml") == own / "simulated.yaml"
    assert shipped.example_names() == ("simulated",)
    for name in ("simulate", "../examples/simulated", ""):
        with pytest.raises(UsageError, match="no example"):
            shipped.example(name)
    monkeypatch.setattr(shipped, "shipped", lambda name: tmp_path / "none" / name)
    with pytest.raises(NotReadyError, match="has no examples"):
        shipped.example("simulated")


# The one screen of ``nicbench demo``: whether the known device was found, and the zones of the other one.


def result(configuration: str, frame_bytes: int, **values: Value) -> Result:
    return Result(
        id=f"{configuration}/{frame_bytes}/{len(values)}",
        method="throughput",
        configuration=configuration,
        parameters={"frame_bytes": frame_bytes},
        values=values,
    )


def known(frame_bytes: int, lower: float, upper: float, agreement: str = "agree") -> Result:
    rate = Bounded(value=lower, lower=lower, upper=upper)
    values = {"ndr_frames_per_s": rate, "known_rate_frames_per_s": 6240.0, "agreement": agreement}
    return result("known", frame_bytes, **values)


FORWARDING = (
    result("forwarding", 64, ndr_frames_per_s=Bounded(value=41e3, lower=41e3, upper=58.2e3, some=57.9e3, half=47e3)),
    result("forwarding", 512, ndr_frames_per_s=Bounded(value=105e3, lower=105e3, upper=107e3)),
    result("forwarding", 1518, ndr_frames_per_s=Bounded(value=None, reason_null="nothing was measured")),
    result("forwarding", 64, latency_p50_ns=22463.0, latency_p99_9_ns=253183.0),
)


def shown(*results: Result) -> list[str]:
    return screen(Summary(title="t", verdict=ResultVerdict.VALID, results=results), ()).splitlines()


def test_it_says_that_the_known_device_was_found_and_then_the_zones() -> None:
    lines = shown(known(64, 6229.0, 6258.0), known(512, 6230.0, 6246.0), *FORWARDING)
    assert " ".join(lines[:2]) == (
        "known device: expected 6.240 kpps, found 6.229 to 6.258 kpps at every size: this machine can be measured on"
    )
    assert [re.split(" {3,}", line.strip()) for line in lines[-3:]] == [
        ["64", "41.00 kpps", "57.90 kpps", "58.20 kpps", "22.5 µs", "253 µs"],
        ["512", "105.0 kpps", "–", "107.0 kpps", "–", "–"],
        ["1518", "–", "–", "–", "–", "–"],
    ]
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 24


def test_a_result_that_is_not_valid_is_marked_and_its_reason_stands_below() -> None:
    doubtful = FORWARDING[3].replace(
        verdict=ResultVerdict.DISTURBED, disturbances=("other programs used 53.8 % of the DUT's core 1",)
    )
    lines = shown(known(64, 6229.0, 6258.0), *FORWARDING[:3], doubtful)
    assert [line.split()[0] for line in lines[-5:-2]] == ["64*", "512", "1518"]
    assert " ".join(lines[-2:]) == (
        "* latency at 64 bytes is disturbed: other programs used 53.8 % of the DUT's core 1"
    )
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("agreement", ["do not agree", "cannot be told"])
def test_a_known_device_that_was_missed_is_told_with_the_culprit_and_the_command_that_helps(agreement: str) -> None:
    checked = [known(64, 6229.0, 6258.0), known(512, 5000.0, 5100.0, agreement)]
    said = known_words(checked, "other programs used 53.8 % of the DUT's core 1")
    assert said == (
        "known device: expected 6.240 kpps, found 5.000 to 6.258 kpps, missed at 512 bytes: other programs used "
        "53.8 % of the DUT's core 1; `sudo nicbench doctor` says what disturbs this machine, and how to end it"
    )
    note = "NDR: the time was spent after 5 trials"
    open_one = checked[1].replace(disturbances=(note,))
    assert "missed at 512 bytes: the time was spent after 5 trials; `sudo" in known_words([open_one], None)
    assert known_words([], None) == "the known device was not measured: see the report"


def test_the_culprit_is_the_commonest_reason_and_no_flood_that_the_tester_could_not_send() -> None:
    stalled = Finding(reason=Reason.DISTURBED, threshold="t", value=22.0, limit=5.0, text="the worker stood for 22 ms")
    unsent = Finding(reason=Reason.UNSENT, threshold="t", value=0.7, limit=0.01, text="73 % were not sent")
    trials = [trial(14.88e6, unsent), trial(14.88e6, unsent), trial(6250.0, stalled), trial(6250.0)]
    missed = known(64, 6100.0, 6300.0, "cannot be told")
    said = screen(Summary(title="t", verdict=ResultVerdict.VALID, results=(missed,)), trials).replace("\n", " ")
    assert "missed at 64 bytes: the worker stood for 22 ms; `sudo nicbench doctor`" in said


def trial(load_frames_per_s: float, *findings: Finding) -> Trial:
    request = TrialRequest(
        frame_bytes=64,
        load_frames_per_s=load_frames_per_s,
        duration_s=0.5,
        drain_s=0.1,
        settle_s=0.05,
        purpose=Purpose.SEARCH,
    )
    counts = Counts.sum_of(())
    reading = Reading(transmit_ns=1, counts=counts, streams=(), ports=(), latency=None, health=Health())
    return Trial(
        id="t0001",
        key="k",
        test="throughput",
        configuration="known",
        parameters={},
        repeat=0,
        request=request,
        reading=reading,
        verdict=Verdict(findings=findings),
    )


def test_the_known_device_passes_a_tenth_of_what_came_back_in_two_digits() -> None:
    assert known_device(61_234.5) == (6100, 122)
    assert known_device(2_345_678.0) == (230_000, 4600)
    assert known_device(0.0) == (100, 10)


def test_the_bench_file_of_the_run_has_the_rate_of_this_machine() -> None:
    path = example("demo")
    bench = parse(with_device(path.read_text(), 6100, 122).encode(), path)
    device, forwarding = (each.dut for each in bench.configurations)
    assert device.kind == "policer"
    assert device.options.model_dump(include={"rate", "burst"}) == {"rate": 6100.0, "burst": 122}
    assert forwarding.kind == "kernel-forward"
