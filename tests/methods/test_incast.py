"""Incast: the load is the sum of the senders, the latency the probe's alone; neither is believed beyond its time."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.ports import free_port

from nicbench.core.result import Result
from nicbench.core.round import Figures, Job, JobOutcome, RequestLatency, RoundRequest
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.incast import Incast
from nicbench.report.drawing.kit import WIDE
from nicbench.report.drawing.plots import plot_chart, split_plots
from nicbench.report.tables import sections, side_by_side
from nicbench.report.tails import tail_tables
from nicbench.stats.latency import histogram_of
from nicbench.workloads.base import End, Watch
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder

from .round_contexts import Laboratory, streamed

SAMPLES_NS = {40_000: 9_000, 90_000: 700, 120_000: 200, 180_000: 60, 240_000: 30, 900_000: 10}
ONE_POINT = {"message_bytes": ["64 KiB"], "streams": [5], "duration": "2 s"}


def probed(took_s: float = 1.0, **changes: object) -> JobOutcome:
    latency = RequestLatency(
        basis="half round trip",
        count=sum(SAMPLES_NS.values()),
        minimum_ns=40_000,
        mean_ns=50_000,
        maximum_ns=900_000,
        histogram=histogram_of(SAMPLES_NS.items()),
    ).replace(**changes)
    return JobOutcome(figures=Figures(latency=latency), began_s=0.0, took_s=took_s)


def loaded(_: int, job: Job) -> JobOutcome:
    return probed() if job.role == "probe" else streamed(40e6 if job.client.endswith("0") else 50e6)


def results(outcome: Callable[[int, Job], JobOutcome], **options: object) -> tuple[Laboratory, tuple[Result, ...]]:
    laboratory = Laboratory(outcome, ports=2, clients_per_port=2)
    method = Incast("incast", Incast.Options.model_validate({**ONE_POINT, **options}))
    assert method.objection(laboratory.context) is None
    return laboratory, asyncio.run(method.run(laboratory.context))


def test_all_senders_load_one_port_while_a_probe_times_messages() -> None:
    laboratory, (result,) = results(loaded)
    (request,) = laboratory.requests
    assert [(job.workload, job.role, job.client, job.server) for job in request.jobs] == [
        ("iperf3", "load", "c00", "s0"),
        ("iperf3", "load", "c01", "s0"),
        ("sockperf", "probe", "c00", "s0"),
    ]
    assert len({job.port for job in request.jobs}) == 3
    assert result.values["throughput_bits_per_s"] == 90e6
    assert (result.values["sender_minimum_bits_per_s"], result.values["sender_maximum_bits_per_s"]) == (40e6, 50e6)
    assert (result.values["latency_maximum_ns"], result.values["latency_basis"]) == (900_000, "half round trip")
    assert result.verdict == "valid"


def test_datagrams_are_timed_beside_connections_in_one_round() -> None:
    laboratory, (result,) = results(loaded, probe_transport="udp")
    (request,) = laboratory.requests
    assert [(job.role, job.ask.transport) for job in request.jobs] == [
        ("load", "tcp"),
        ("load", "tcp"),
        ("probe", "udp"),
    ]
    assert result.parameters["probe"] == "sockperf over udp, 64 bytes, c00 to s0"


def test_messages_are_counted_in_the_bins_of_the_published_report() -> None:
    _, (result,) = results(loaded)
    bounds = (50, 100, 150, 200, 250)
    assert [result.values[f"bin_to_{bound}000_ns_messages"] for bound in bounds] == [9_000, 700, 200, 60, 30]
    assert result.values["bin_over_250000_ns_messages"] == 10
    assert [result.values[f"outside_{bound}000_ns_messages"] for bound in bounds] == [1_000, 300, 100, 40, 10]
    (table,) = tail_tables([result], {})
    assert (table.what, table.most) == ("messages", 10_000)
    assert table.rows[0].outside[-1][1] == "0.100 %"


def test_repetitions_are_one_distribution_of_all_their_messages() -> None:
    laboratory, (result,) = results(loaded, repetitions=3)
    assert len(laboratory.requests) == 3
    assert result.values["timed_messages"] == 30_000
    assert result.values["bin_over_250000_ns_messages"] == 30


def test_rdma_is_loaded_and_probed_by_perftest_with_queue_pairs() -> None:
    laboratory, _ = results(loaded, transport="rdma", streams=[100])
    load, _, probe = laboratory.requests[0].jobs
    assert (load.workload, load.ask.transport, load.ask.verb, load.ask.streams) == ("perftest", "rdma", "write", 100)
    assert (probe.workload, probe.ask.operation, probe.ask.verb) == ("perftest", "request-response", "send")


def test_a_probe_that_runs_on_without_load_is_named() -> None:
    _, (result,) = results(lambda n, job: probed(4.0) if job.role == "probe" else loaded(n, job))
    assert result.verdict == "disturbed"
    assert "before the probe was" in result.disturbances[0]


def test_a_sender_that_fails_leaves_the_sum_unknown_and_the_latency_stands() -> None:
    _, (result,) = results(lambda n, job: streamed(None) if job.client == "c01" else loaded(n, job))
    assert result.verdict == "incomplete"
    assert result.values["throughput_bits_per_s"] is None
    assert result.values["latency_maximum_ns"] == 900_000


def test_a_probe_without_samples_has_no_bins_rather_than_empty_ones() -> None:
    _, (result,) = results(lambda n, job: probed(histogram=None) if job.role == "probe" else loaded(n, job))
    assert not [name for name in result.values if name.startswith("bin_")]


def test_counters_of_pauses_and_marks_stand_beside_the_latencies() -> None:
    laboratory = Laboratory(loaded, clients_per_port=2)
    counted = iter([{"s0": {"tx_prio3_pause": 5, "rx_bytes": 1}}, {"s0": {"tx_prio3_pause": 47, "rx_bytes": 9}}])

    async def counters() -> dict[str, dict[str, int]]:
        return next(counted)

    laboratory.player.counters = counters  # type: ignore[method-assign]
    (result,) = asyncio.run(Incast("i", Incast.Options.model_validate(ONE_POINT)).run(laboratory.context))
    assert result.values["congestion"] == "s0 tx_prio3_pause 42"


def incast_of(configuration: str, transport: str = "rdma") -> list[Result]:
    laboratory = Laboratory(loaded, clients_per_port=2)
    options = {"transport": transport, "message_bytes": [1024, 4096], "streams": [20, 5], "duration": "2 s"}
    found = asyncio.run(Incast("i", Incast.Options.model_validate(options)).run(laboratory.context))
    return [one.replace(configuration=configuration) for one in found]


def test_queue_pairs_rise_in_tables_and_figures() -> None:
    (section,) = sections(incast_of(""), {})
    (grid,) = section.grids
    assert (grid.corner, [label for label, _ in grid.rows]) == ("Queue pairs a sender", ["5", "20"])
    assert [row.result.parameters["streams"] for row in section.rows] == [5, 20, 5, 20]
    drawn = [plot_chart(plot, section, WIDE) for plot in section.table.plots]
    for chart, title in zip(drawn, ("Throughput [Mb/s]", "Latency, greatest [µs]"), strict=True):
        text = json.dumps(chart, ensure_ascii=False)
        assert title in text
        assert "Queue pairs a sender" in text
        assert '"1024 bytes"' in text
        assert '"4096 bytes"' in text


def test_two_adapters_are_two_lines_of_a_figure_for_each_size() -> None:
    (section,) = side_by_side([*incast_of("A"), *incast_of("B")], {})
    for plot in section.table.plots:
        parts = split_plots(plot, section)
        assert [name for _, name in parts] == ["1024 bytes", "4096 bytes"]
        for part, _ in parts:
            chart = plot_chart(plot, part, WIDE)
            (domain,) = {tuple(layer["encoding"]["color"]["scale"]["domain"]) for layer in chart["layer"]}
            assert domain == ("A", "B")


def test_the_tail_says_of_how_many_streams_or_queue_pairs_it_is() -> None:
    (table,) = tail_tables(incast_of(""), {})
    assert [row.name for row in table.rows][:2] == [
        "1024 bytes, 5 queue pairs a sender",
        "1024 bytes, 20 queue pairs a sender",
    ]
    _, (alone,) = results(loaded, streams=[1])
    assert tail_tables([alone], {})[0].rows[0].name == "65536 bytes, 1 stream a sender"


def test_connections_of_tcp_are_no_queue_pairs() -> None:
    (section,) = sections(incast_of("", "tcp"), {})
    assert section.grids[0].corner == "Streams a sender"


def test_counters_of_pauses_stand_in_the_row_of_their_result() -> None:
    (section,) = sections(incast_of(""), {})
    assert "PFC and ECN" in [column.head for column in section.table.columns]


def test_one_client_is_no_incast() -> None:
    objection = Incast("i", Incast.Options()).objection(Laboratory(loaded).context)
    assert "2 senders are asked for, and 1 lead" in objection.message


def test_a_receiver_that_is_no_port_is_refused_before_anything_is_sent() -> None:
    objection = Incast("i", Incast.Options(receiver="s7")).objection(Laboratory(loaded, clients_per_port=2).context)
    assert "s0" in objection.next_step


def test_the_default_sizes_of_udp_are_those_that_a_datagram_can_have() -> None:
    assert max(Incast.Options.model_validate({"transport": "udp"}).sizes) == 16 * 1024


@pytest.mark.parametrize(
    "wrong",
    [{"streams": [0]}, {"transport": "roce"}, {"senders": 0}, {"bins": ["100 us", "50 us"]}, {"duration": "1 ms"}],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Incast.Options.model_validate(wrong)


def test_what_rdma_repeated_stands_beside_its_row() -> None:
    laboratory = Laboratory(loaded, clients_per_port=2)
    counted = iter([{"s0": {"duplicate_request": 5, "rcvd_pkts": 1}}, {"s0": {"duplicate_request": 8, "rcvd_pkts": 9}}])

    async def counters() -> dict[str, dict[str, int]]:
        return next(counted)

    laboratory.player.counters = counters  # type: ignore[method-assign]
    options = {**ONE_POINT, "transport": "rdma", "message_bytes": [4096], "streams": [5]}
    (result,) = asyncio.run(Incast("i", Incast.Options.model_validate(options)).run(laboratory.context))
    assert result.values["rdma_repeats"] == "4096 bytes, 5 queue pairs a sender: s0 duplicate_request 3"


def test_each_figure_of_the_grid_has_its_own_unit() -> None:
    _, (result, *_) = results(loaded, **ONE_POINT)
    slow = result.replace(values={**result.values, "throughput_bits_per_s": 2.434e6, "latency_maximum_ns": 123_424_000})
    (section,) = sections([slow], {})
    assert [cell.text for _, row in section.grids[0].rows for cell in row if cell] == ["2.43 Mb/s / 123 ms"]


# An incast over RDMA end to end, by processes that say what perftest said: namespaces have no RDMA devices.


GOLDEN = Path(__file__).parents[1] / "golden" / "workloads"
SAID = {"ib_write_bw": "perftest-4.5-write-bw-q10.client.txt", "ib_send_lat": "perftest-4.5-send-lat-raw.client.txt"}
TOOL = """#!{python} -IS
import socket, sys, time
words = sys.argv[1:]
if "--version" in words or "-V" in words:
    print("Version: 4.5")
    sys.exit()
port = int(words[words.index("-p") + 1])
if words[-1] == "127.0.0.1":
    socket.create_connection(("127.0.0.1", port)).close()
    time.sleep({longer_s})
    print(open({said!r}).read())
else:
    with socket.create_server(("127.0.0.1", port)) as server:
        server.accept()
"""


@pytest.fixture
def perftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In front of PATH; the load lasts longer than the probe."""
    for name, said in SAID.items():
        script = tmp_path / name
        longer_s = 0.5 if name == "ib_write_bw" else 0.0
        script.write_text(TOOL.format(python=sys.executable, said=str(GOLDEN / said), longer_s=longer_s))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("perftest")
def test_two_senders_by_ib_write_bw_and_a_probe_by_ib_send_lat(tmp_path: Path) -> None:
    laboratory = Laboratory(lambda *_: streamed(None), clients_per_port=2, link_bits_per_s=None)

    async def played(number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        ends = {name: End(LocalHost(), "127.0.0.1", rdma_device="rxe0") for name in ("s0", "c00", "c01")}
        jobs = tuple(job.replace(port=free_port()) for job in request.jobs)
        request = request.replace(jobs=jobs)
        return await play(request, ends, RawFolder(tmp_path, f"r{number}"))

    laboratory.player.play = played  # type: ignore[method-assign]
    options = {
        "transport": "rdma",
        "message_bytes": [16384],
        "streams": [10],
        "duration": 2,
        "bins": [1e-3, 4e-3, 1e-2],
    }
    (result,) = asyncio.run(Incast("i", Incast.Options.model_validate(options)).run(laboratory.context))
    assert result.disturbances == ()
    assert result.values["throughput_bits_per_s"] == 2 * 2.66 * 2**20 * 8
    assert (result.values["latency_maximum_ns"], result.values["latency_basis"]) == (26_601_500, "half round trip")
    assert result.values["timed_messages"] == 999
    assert result.values["outside_10000000_ns_messages"] == 3
