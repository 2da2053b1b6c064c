"""Requests: by message size, transport and load; percentiles, the tail, and rounds without a load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction

import pytest

from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Figures, Job, JobOutcome, RequestLatency
from nicbench.methods.request_response import LOAD_LONGER_S, MESSAGES, RequestResponse
from nicbench.report.drawing.kit import WIDE
from nicbench.report.drawing.plots import plot_chart, split_plots
from nicbench.report.tables import sections
from nicbench.report.tails import SLOWEST_OF, tail_tables
from nicbench.stats.latency import histogram_of

from .round_contexts import Laboratory, streamed

LATENCIES = [(20_000, 900), (60_000, 90), (120_000, 9), (300_000, 1)]


def answered(latencies: list[tuple[int, int]] | None = None, *, scale: float = 1.0, rate: float = 1e4) -> JobOutcome:
    """A tool that keeps every request: a number of each latency."""
    counted = [(round(value * scale), number) for value, number in latencies or LATENCIES]
    total = sum(number for _, number in counted)
    latency = RequestLatency(
        basis="half round trip",
        count=total,
        minimum_ns=min(counted)[0],
        mean_ns=sum(value * number for value, number in counted) / total,
        maximum_ns=max(counted)[0],
        histogram=histogram_of(counted),
    )
    return JobOutcome(figures=Figures(transactions_per_s=rate, latency=latency), began_s=0.0, took_s=1.0)


def asked(laboratory: Laboratory, **options: object) -> tuple[Result, ...]:
    method = RequestResponse("requests", RequestResponse.Options.model_validate(options))
    return asyncio.run(method.run(laboratory.context))


def probes(outcome: JobOutcome, load: JobOutcome | None = None) -> Callable[[int, Job], JobOutcome]:
    beside = load or streamed(90e6).replace(began_s=0.0, took_s=3.0)
    return lambda _, job: outcome if job.role == "probe" else beside


def of_part(results: tuple[Result, ...], part: str) -> list[Result]:
    return [one for one in results if one.parameters["part"] == part]


def test_messages_go_from_the_least_that_the_tool_has_to_64_kib_and_to_a_datagrams_most() -> None:
    laboratory = Laboratory(probes(answered()))
    asked(laboratory)
    sizes = {"tcp": [], "udp": []}  # type: dict[str, list[int | None]]
    for request in laboratory.requests:
        sizes[request.jobs[0].ask.transport].append(request.jobs[0].ask.write_bytes)
    assert sizes == {"tcp": [14, *MESSAGES[1:]], "udp": [14, *MESSAGES[1:-1], 65_507]}
    qperf = Laboratory(probes(answered()))
    asked(qperf, workload="qperf", transport=("tcp",))
    assert [request.jobs[0].ask.write_bytes for request in qperf.requests] == list(MESSAGES)


def test_percentiles_come_from_every_request() -> None:
    main, *_ = asked(Laboratory(probes(answered())), transport=("tcp",), message_bytes=(64,))
    values = main.values
    assert values["transactions_per_s"] == 1e4
    assert values["latency_p50_ns"] == pytest.approx(20_000, rel=1e-3)
    assert values["latency_p99_ns"] == pytest.approx(60_000, rel=1e-3)
    assert values["latency_p99_9_ns"] == pytest.approx(120_000, rel=1e-3)
    assert values["latency_p99_99_ns"] is None  # of a thousand requests none lies above it
    assert (values["latency_minimum_ns"], values["latency_maximum_ns"]) == (20_000.0, 300_000.0)
    assert (values["requests"], values["basis"]) == (1000, "half round trip")


def test_the_tail_counts_the_requests_of_each_bin() -> None:
    (result,) = asked(Laboratory(probes(answered())), transport=("tcp",), message_bytes=(64,))
    bins = [f"bin_to_{bound}_ns_messages" for bound in (50_000, 100_000, 150_000, 200_000, 250_000)]
    assert [result.values[name] for name in (*bins, "bin_over_250000_ns_messages")] == [900, 90, 9, 0, 0, 1]
    (table,) = tail_tables([result], {})
    (row,) = table.rows
    assert (row.name, table.what) == ("64 B, s0, TCP, no load", "messages")
    assert row.frames == "1\u202f000"


def test_the_chance_that_the_slowest_of_several_answers_comes_in_time_is_a_power_of_the_share() -> None:
    """900 of 1000 come within 50 µs, 990 within 100, 999 within 150 to 250."""
    (table,) = tail_tables(asked(Laboratory(probes(answered())), transport=("tcp",), message_bytes=(64,)), {})
    for number, chances in zip(SLOWEST_OF, table.rows[0].slowest, strict=True):
        exact = [Fraction(within, 1000) ** number for within in (900, 990, 999, 999, 999)]
        assert [chance.value for chance in chances] == pytest.approx([float(one) for one in exact], rel=1e-9)
        assert all(chance.lower <= chance.value <= chance.upper for chance in chances)


def test_repetitions_are_of_one_distribution() -> None:
    turns = [answered([(10_000, 100)], rate=2e4), answered([(30_000, 300)], rate=1e4)]
    laboratory = Laboratory(lambda number, _: turns[number - 1])
    (main,) = asked(laboratory, transport=("udp",), message_bytes=(64,), repetitions=2)
    assert main.values["transactions_per_s"] == 1.5e4
    assert main.values["latency_mean_ns"] == 25_000.0
    assert main.values["latency_p50_ns"] == pytest.approx(30_000, rel=1e-3)
    assert main.values["requests"] == main.values["timed_messages"] == 400
    assert main.values["outside_50000_ns_messages"] == 0


def test_a_tool_without_samples_has_the_mean_of_its_own_percentiles_and_no_tail() -> None:
    said = [
        JobOutcome(
            figures=Figures(
                transactions_per_s=1e4,
                latency=RequestLatency(
                    basis="round trip", mean_ns=value, percentiles_ns={"50": value, "99": 2 * value}
                ),
            )
        )
        for value in (10_000.0, 20_000.0)
    ]
    results = asked(
        Laboratory(lambda number, _: said[number - 1]), transport=("tcp",), message_bytes=(64,), repetitions=2
    )
    (main,) = results
    assert (main.values["latency_p50_ns"], main.values["latency_p99_ns"]) == (15_000.0, 30_000.0)
    assert (main.values["latency_p99_9_ns"], main.values["requests"]) == (None, None)


LOAD = {"workload": "iperf3", "streams": 2, "rate": 10e6}


def test_with_a_load_the_same_is_measured_idle_and_beside_it() -> None:
    laboratory = Laboratory(probes(answered()), clients_per_port=3)
    results = asked(laboratory, transport=("tcp",), message_bytes=(64, 1024), load=LOAD, duration=1.0)
    idle, loaded = laboratory.requests[0], laboratory.requests[2]
    assert [(job.client, job.role) for job in idle.jobs] == [("c00", "probe")]
    assert [(job.client, job.role) for job in loaded.jobs] == [("c00", "probe"), ("c01", "load"), ("c02", "load")]
    assert len({job.port for job in loaded.jobs}) == 3
    assert loaded.jobs[1].ask.duration_s == 1.0 + LOAD_LONGER_S  # it is still there when the probe ends
    told = [(one.parameters["load"], one.values["load_bits_per_s"]) for one in of_part(results, "requests")]
    words = "iperf3, TCP, 2 streams of 10 Mb/s to the server"
    assert told == [("no load", None), ("no load", None), (words, 180e6), (words, 180e6)]


def test_of_a_port_with_one_client_probe_and_load_come_from_the_same() -> None:
    laboratory = Laboratory(probes(answered()))
    asked(laboratory, transport=("tcp",), message_bytes=(64,), load={**LOAD, "also_without": False})
    (request,) = laboratory.requests
    assert [(job.client, job.role) for job in request.jobs] == [("c00", "probe"), ("c00", "load")]


def test_what_was_measured_beside_a_load_that_failed_is_no_latency_under_load() -> None:
    laboratory = Laboratory(probes(answered(), streamed(None)))
    (loaded,) = asked(laboratory, transport=("tcp",), message_bytes=(64,), load={**LOAD, "also_without": False})
    assert loaded.verdict is ResultVerdict.INCOMPLETE
    assert (loaded.values["latency_p50_ns"], loaded.values["transactions_per_s"]) == (None, None)
    assert "exit status 1" in loaded.disturbances[0]


def test_a_load_that_was_over_before_the_probe_marks_the_result() -> None:
    early = streamed(90e6).replace(began_s=0.0, took_s=0.5)
    laboratory = Laboratory(probes(answered(), early))
    main, *_ = asked(laboratory, transport=("tcp",), message_bytes=(64,), load={**LOAD, "also_without": False})
    assert main.verdict is ResultVerdict.DISTURBED
    assert main.disturbances == ("the load iperf3 of c00 was over 0.50 s before the probe was",)


def test_a_probe_that_failed_has_no_figures() -> None:
    (result,) = asked(Laboratory(lambda *_: streamed(None)), transport=("tcp",), message_bytes=(64,))
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert result.values["basis"] is None


def test_the_report_has_tables_a_sentence_and_percentiles_over_message_sizes() -> None:
    def outcome(_: int, job: Job) -> JobOutcome:
        if job.role == "load":
            return streamed(90e6).replace(began_s=0.0, took_s=3.0)
        return answered(scale=1 + (job.ask.write_bytes or 0) / 1000)

    laboratory = Laboratory(outcome, ports=2, clients_per_port=2)
    results = asked(laboratory, transport=("tcp", "udp"), message_bytes=(64, 1000, 4096), load=LOAD)
    (main,) = sections(results, {})
    assert main.sentence == (
        "makes 10\u202f000\u00a0transactions/s of 64 B over TCP, half within 21.3\u00a0µs (half round trip; no load)"
    )
    (plot,) = main.table.plots
    parts = split_plots(plot, main)
    assert [name for _, name in parts] == ["s0", "s1"]
    drawn = plot_chart(plot, parts[0][0], WIDE)
    (values,) = drawn["datasets"].values()
    lines = list(dict.fromkeys(value["line"] for value in values))
    assert len(lines) == 3 * 4  # percentiles by transport and load
    assert lines[0] == "median, TCP, no load"
    assert {value["x"] for value in values} == {"64 B", "1 kB", "4 KiB"}
