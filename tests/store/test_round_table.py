"""rounds.parquet: a row for each job, figures with their units, failures in words."""

from __future__ import annotations

import io

import pyarrow.parquet as pq

from nicbench.core.frames import FrameFigures, FrameTimes
from nicbench.core.round import Figures, Flow, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.core.verdict import Verdict
from nicbench.stats.latency import histogram_of
from nicbench.store.tables import rounds_parquet


def a_round(*outcomes: JobOutcome) -> Round:
    ask = JobSpec(duration_s=1.0, write_bytes=8192)
    jobs = tuple(
        Job(workload="iperf3", client=f"c{number}", server="s0", ask=ask, port=5201 + 16 * number)
        for number in range(len(outcomes))
    )
    return Round(
        id="r0007",
        key="tcp/0/0",
        test="tcp",
        configuration="default",
        parameters={"mode": "TCP"},
        repeat=0,
        request=RoundRequest(jobs=jobs, duration_s=1.0),
        outcomes=outcomes,
        counters={"s0": {"rx_bytes": 10}},
        verdict=Verdict(),
    )


def test_every_job_of_a_round_is_a_row() -> None:
    flow = Flow(direction="reverse", received_bytes=5, received_bits_per_s=40.0, retransmissions=2)
    done = JobOutcome(figures=Figures(flows=(flow,)), version="3.12", client_command=("iperf3", "-c", "a b"))
    failed = JobOutcome(failure="iperf3 is not installed", repeatable=False)
    first, second = pq.read_table(io.BytesIO(rounds_parquet([a_round(done, failed)]))).to_pylist()
    assert (first["round"], first["job"], first["client"], first["server"]) == ("r0007", 1, "c0", "s0")
    assert (first["reverse_received_bits_per_s"], first["reverse_retransmissions"]) == (40.0, 2)
    assert first["forward_received_bits_per_s"] is None
    assert first["client_command"] == "iperf3 -c 'a b'"
    assert first["counters_json"] == '{"s0":{"rx_bytes":10}}'
    assert (second["job"], second["failure"], second["version"]) == (2, "iperf3 is not installed", None)


def test_frames_have_columns_of_their_own() -> None:
    times = FrameTimes(
        count=3, minimum_ns=10, mean_ns=20.0, maximum_ns=30, histogram=histogram_of([(10, 1), (20, 1), (30, 1)])
    )
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=1,
        frames=3,
        bytes=30,
        frames_per_s=24.0,
        bytes_per_s=240.0,
        dropped_frames=1,
        due_frames=4,
        completion=times,
    )
    (row,) = pq.read_table(
        io.BytesIO(rounds_parquet([a_round(JobOutcome(figures=Figures(frames=figures)))]))
    ).to_pylist()
    assert (row["engine"], row["frames_per_s"], row["bytes_per_s"], row["frames"]) == ("io_uring", 24.0, 240.0, 3)
    assert (row["dropped_frames"], row["due_frames"]) == (1, 4)
    assert (row["completion_p50_ns"], row["completion_p99_ns"], row["completion_maximum_ns"]) == (20, None, 30)


def test_no_rounds_are_an_empty_table() -> None:
    assert pq.read_table(io.BytesIO(rounds_parquet([]))).num_rows == 0
