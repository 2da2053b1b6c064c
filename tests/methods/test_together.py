"""What several clients move together: over the time from the first begin to the last end, never more than a link."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Figures, Flow, Job, JobOutcome
from nicbench.methods.agreement import Agreement
from nicbench.methods.forwarding import Forwarding
from nicbench.methods.stream import Stream

from .round_contexts import Laboratory, streamed


def moved(megabytes: float, began_s: float, took_s: float) -> JobOutcome:
    """A client that moved a number of bytes in some seconds."""
    flow = Flow(
        direction="forward",
        received_bytes=round(megabytes * 1e6),
        received_bits_per_s=8e6 * megabytes / took_s,
        duration_s=took_s,
    )
    return JobOutcome(figures=Figures(flows=(flow,)), began_s=began_s, took_s=took_s)


ONE_AFTER_ANOTHER = {"c00": moved(10, 0.0, 1.0), "c01": moved(10, 0.0, 1.77)}
"""Transfers of 10 MB, one of which had the port to itself at the end: 80 and 45.2 Mb/s, and the port carries 100."""


def agreed(outcomes: Mapping[str, JobOutcome]) -> Result:
    laboratory = Laboratory(lambda _, job: outcomes[job.client], clients_per_port=2)
    method = Agreement("tools", Agreement.Options(transfer_bytes="10 MB", repetitions=2))
    results = asyncio.run(method.run(laboratory.context))
    return next(result for result in results if result.parameters["part"] == "tools")


def streams(laboratory: Laboratory, **options: object) -> dict[str, Result]:
    method = Stream("streams", Stream.Options.model_validate({"duration": "1 s", "repetitions": 1, **options}))
    results = asyncio.run(method.run(laboratory.context))
    return {
        str(result.parameters.get("port", "all")): result
        for result in results
        if result.parameters["part"] != "clients"
    }


def test_transfers_that_end_at_different_times_are_bytes_over_the_whole_time() -> None:
    result = agreed(ONE_AFTER_ANOTHER)
    assert result.values["throughput_bits_per_s"] == pytest.approx(160e6 / 1.77)
    assert result.verdict is ResultVerdict.VALID


def test_transfers_that_begin_one_after_the_other_are_no_faster_together() -> None:
    result = agreed({"c00": moved(10, 0.0, 0.9), "c01": moved(10, 0.8, 0.9)})
    assert result.values["throughput_bits_per_s"] == pytest.approx(160e6 / 1.7)


def test_ports_and_all_of_them_have_the_rate_of_the_whole_time() -> None:
    outcomes = {"c00": moved(10, 0.0, 1.0), "c01": moved(1, 0.0, 2.0), "c10": moved(10, 0.0, 1.0)}
    outcomes["c11"] = moved(5, 1.0, 1.5)
    found = streams(Laboratory(lambda _, job: outcomes[job.client], ports=2, clients_per_port=2))
    rates = {port: result.values["throughput_bits_per_s"] for port, result in found.items()}
    assert rates == {
        "s0": pytest.approx(88e6 / 2.0),
        "s1": pytest.approx(120e6 / 2.5),
        "all": pytest.approx(208e6 / 2.5),
    }


def test_a_sum_that_the_port_cannot_carry_is_a_contradiction_and_no_result() -> None:
    laboratory = Laboratory(lambda _, __: streamed(62.65e6), clients_per_port=2)
    result = streams(laboratory)["s0"]
    assert result.values["throughput_bits_per_s"] is None
    assert result.verdict is ResultVerdict.INCOMPLETE
    said = "s0: 2 jobs say 125.3 Mb/s together to the measured host, and the link carries 100 Mb/s"
    assert said in result.disturbances


def test_one_port_that_cannot_carry_its_sum_leaves_that_of_the_others() -> None:
    rates = {"c00": 62.65e6, "c01": 62.65e6, "c10": 40e6, "c11": 40e6}
    found = streams(Laboratory(lambda _, job: streamed(rates[job.client]), ports=2, clients_per_port=2))
    assert {port: result.values["throughput_bits_per_s"] for port, result in found.items()} == {
        "s0": None,
        "s1": 80e6,
        "all": None,
    }


def test_both_directions_of_a_link_carry_its_rate_each() -> None:
    def both(_: int, job: Job) -> JobOutcome:
        flows = tuple(Flow(direction=way, received_bits_per_s=48e6) for way in ("forward", "reverse"))
        return JobOutcome(figures=Figures(flows=flows), began_s=0.0, took_s=1.0)

    found = streams(Laboratory(both, clients_per_port=2), direction=["both"])
    assert found["s0"].values["throughput_bits_per_s"] == pytest.approx(192e6)


def test_through_the_device_the_sum_is_held_against_the_ports_of_both_ends() -> None:
    laboratory = Laboratory(lambda _, __: streamed(62.65e6), ports=2, clients_per_port=2)
    method = Forwarding("forwarding", Forwarding.Options(duration="1 s"))
    first = asyncio.run(method.run(laboratory.context))[0]
    assert first.values["throughput_bits_per_s"] is None
    assert any(text.startswith("s0: 2 jobs say 125.3 Mb/s together to the") for text in first.disturbances)
    assert any(text.startswith("s1: 2 jobs say 125.3 Mb/s together from the") for text in first.disturbances)


def test_what_a_sender_alone_tells_of_datagrams_is_not_held_against_the_link() -> None:
    def sent(_: int, job: Job) -> JobOutcome:
        flow = Flow(direction="forward", sent_bits_per_s=80e6)
        return JobOutcome(figures=Figures(flows=(flow,)), began_s=0.0, took_s=1.0)

    found = streams(Laboratory(sent, clients_per_port=2), transport="udp", workload="iperf3")
    assert found["s0"].values["throughput_bits_per_s"] == 160e6
