"""Transfers: the grid, the mean of the repetitions, source and sink, and whose limit it was."""

from __future__ import annotations

import asyncio
import csv
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import WrongFileError
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import EndpointFacts, Job, JobOutcome, MachineCpu
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions, choose_rows
from nicbench.importing.results import import_results
from nicbench.methods.stream import Stream
from nicbench.methods.transfer import Transfer, bucket_note
from nicbench.report.tables import sections

from .round_contexts import Laboratory, streamed

REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "nsfnic4_2000_streams.csv"


def transferred(laboratory: Laboratory, **options: object) -> tuple[Result, ...]:
    method = Transfer("files", Transfer.Options.model_validate(options))
    return asyncio.run(method.run(laboratory.context))


def by_client(rates: dict[str, float | None]) -> Callable[[int, Job], JobOutcome]:
    return lambda _, job: streamed(rates[job.client])


def test_the_defaults_are_those_of_the_published_measurement() -> None:
    laboratory = Laboratory(lambda number, job: streamed(80e6 + 1e6 * (number % 10)))
    results = transferred(laboratory)
    assert [(one.parameters["transfer"], one.parameters["write_bytes"]) for one in results] == [
        (size, write) for size in ("1 MB", "5 MB", "10 MB") for write in (1024, 4096, 8192)
    ]
    assert len(laboratory.requests) == 90
    assert all(job.workload == "nuttcp" for request in laboratory.requests for job in request.jobs)
    rates = [80e6 + 1e6 * step for step in range(10)]
    first = results[0].values
    assert first["throughput_bits_per_s"] == pytest.approx(statistics.fmean(rates))
    assert first["throughput_deviation_bits_per_s"] == pytest.approx(statistics.stdev(rates))
    assert (first["throughput_minimum_bits_per_s"], first["throughput_maximum_bits_per_s"]) == (80e6, 89e6)
    assert laboratory.published[0].id == "files/forward/1000000/1024/c00"


def test_each_port_has_a_grid_of_transfer_size_by_write_size() -> None:
    laboratory = Laboratory(by_client({"c00": 90e6, "c10": 45e6}), ports=2)
    results = transferred(laboratory, transfer_bytes=(1_000_000, 1 << 20), write_bytes=(1024, 8192), repetitions=2)
    (section,) = sections(results, {})
    assert [grid.title for grid in section.grids] == ["s0", "s1"]
    assert section.grids[0].heads == (("1024 bytes", "8192 bytes"),)
    cells = [[cell.text if cell else None for cell in row] for _, row in section.grids[1].rows]
    assert cells == [["45.0", "45.0"], ["45.0", "45.0"]]
    assert {name for name, _ in section.grids[0].rows} == {"1 MB", "1 MiB"}


def test_every_client_transfers_alone() -> None:
    laboratory = Laboratory(by_client({"c00": 90e6, "c01": 90e6}), clients_per_port=2)
    results = transferred(laboratory, transfer_bytes=(1000,), write_bytes=(1000,), repetitions=1)
    assert [[job.client for job in request.jobs] for request in laboratory.requests] == [["c00"], ["c01"]]
    assert [one.parameters["place"] for one in results] == ["s0 from c00", "s0 from c01"]


def test_a_slow_client_is_named_instead_of_being_charged_to_the_port() -> None:
    """As published: 62 Mb/s with one client, 84.5 Mb/s with a faster one through the same port."""
    laboratory = Laboratory(by_client({"c00": 62.3e6, "c01": 84.5e6}), clients_per_port=2)
    slow, fast = transferred(laboratory, transfer_bytes=(10_000_000,), write_bytes=(8192,), repetitions=3)
    assert slow.values["limited_by"] == "client"
    assert "c00 moved 74 % of what c01 moved through the same port" in str(slow.values["limit"])
    assert fast.values["limited_by"] == "unknown"


def test_a_busy_client_is_told_by_its_tool_where_no_monitor_saw_so_short_a_round() -> None:
    laboratory = Laboratory(lambda *_: streamed(50e6, client_cpu_share=0.99, server_cpu_share=0.3))
    (result,) = transferred(laboratory, transfer_bytes=(1000,), write_bytes=(1000,), repetitions=2)
    assert result.values["limited_by"] == "client"


def test_a_busy_server_is_told_by_the_monitor() -> None:
    cpu = (MachineCpu(machine="server", mean=0.5, busiest_core=0.99, samples=2),)
    laboratory = Laboratory(lambda *_: streamed(50e6, client_cpu_share=0.99), cpu=cpu)
    (result,) = transferred(laboratory, transfer_bytes=(1000,), write_bytes=(1000,), repetitions=2)
    assert result.values["limited_by"] == "server"
    assert result.values["server_cpu_mean_percent"] == 50.0


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1_000_000, "the first 32768 bytes pass at once, so that it may show up to 103.4 Mb/s on a link of 100 Mb/s"),
        (30_000, "the first 32768 bytes pass at once: its rate says nothing of the link"),
        (10_000_000, None),
    ],
)
def test_what_a_token_bucket_does_to_short_transfers_is_said(size: int, words: str | None) -> None:
    client = EndpointFacts(name="c0", host="c0", machine="local", address="198.18.0.1", link_bits_per_s=100e6)
    note = bucket_note(client.replace(bucket_bytes=32768), size)
    assert (note is None) if words is None else str(note).endswith(words)
    assert bucket_note(client, size) is None


def test_source_and_sink_are_files_on_the_side_that_sends_and_receives_and_are_removed() -> None:
    seen = []

    def outcome(_: int, job: Job) -> JobOutcome:
        seen.append((job.ask.source_file, job.ask.sink_file, tuple(laboratory.player.files)))
        return streamed(50e6)

    laboratory = Laboratory(outcome)
    options = {"transfer_bytes": (1000,), "write_bytes": (1000,), "repetitions": 1}
    forward, reverse = transferred(
        laboratory, source="/fast", sink={"server": "/slow"}, direction=("forward", "reverse"), **options
    )
    source, sink = "/fast/c00-files-source-1000", "/slow/s0-files-sink-1000"
    assert seen[0] == (source, sink, (source, sink))
    assert seen[1] == ("/fast/s0-files-source-1000", None, ("/fast/s0-files-source-1000",))
    assert laboratory.player.files == []
    assert (forward.parameters["source"], forward.parameters["sink"]) == ("file in /fast", "file in /slow")
    assert (reverse.parameters["source"], reverse.parameters["sink"]) == ("file in /fast", "memory")


def test_files_are_removed_after_an_error_too() -> None:
    def outcome(_: int, job: Job) -> JobOutcome:
        raise RuntimeError("the host is gone")

    laboratory = Laboratory(outcome)
    with pytest.raises(RuntimeError):
        transferred(laboratory, source="/fast")
    assert laboratory.player.files == []


def test_a_client_whose_tool_failed_has_no_mean_and_the_others_have() -> None:
    laboratory = Laboratory(by_client({"c00": None, "c01": 90e6}), clients_per_port=2)
    failed, fine = transferred(laboratory, transfer_bytes=(1000,), write_bytes=(1000,), repetitions=2)
    assert failed.verdict is ResultVerdict.INCOMPLETE
    assert failed.values["throughput_bits_per_s"] is None
    assert "exit status 1" in failed.disturbances[0]
    assert fine.verdict is ResultVerdict.VALID


def imported(**options: object) -> tuple[Result, ...]:
    said = ImportOptions(ignore=("table",), columns={"link_mbps": "link mbps"}, **options)  # type: ignore[arg-type]
    sheet = choose_rows(read_sheet(REFERENCE.read_text(), "x.csv"), said)
    return import_results(sheet, "x.csv", Transfer, said).results


def test_the_published_transfers_come_out_as_they_are_printed() -> None:
    tool = "ttcp (mean of 10, 16 MiB in 8 KiB writes)"
    results = imported(where={"tool": tool})
    (section,) = sections(results, {})
    with REFERENCE.open() as file:
        printed = [row for row in csv.DictReader(file) if row["tool"] == tool]
    (grid,) = section.grids
    ((name, cells),) = grid.rows
    assert name == tool
    assert [cell.text if cell else None for cell in cells] == [row["throughput_mbps"] for row in printed]
    assert grid.heads[1][0] == "10 Mb/s, half duplex, port 1"
    assert results[0].values["throughput_bits_per_s"] == pytest.approx(6.49e6)


def test_a_published_transfer_above_its_link_is_refused() -> None:
    text = "tool,link mbps,port,throughput mbps\nttcp,10,1,11\n"
    said = ImportOptions()
    with pytest.raises(WrongFileError, match="the link carries no more"):
        import_results(read_sheet(text, "x.csv"), "x.csv", Transfer, said)


@pytest.mark.parametrize("table", ["2", "8", "10"])
def test_the_published_netperf_rows_are_streams(table: str) -> None:
    said = ImportOptions(where={"table": table}, columns={"link_mbps": "link mbps"})
    sheet = choose_rows(read_sheet(REFERENCE.read_text(), "x.csv"), said)
    results = import_results(sheet, "x.csv", Stream, said).results
    (section,) = sections(results, {})
    with REFERENCE.open() as file:
        printed = [row for row in csv.DictReader(file) if row["table"] == table]
    (grid,) = section.grids
    cells = {(name, head): cell for name, row in grid.rows for head, cell in zip(grid.heads[0], row, strict=True)}
    for row in printed:
        cell = cells[f"{row['link_mbps']} Mb/s, {row['duplex']} duplex", f"port {row['port']}"]
        numbers = [float(text) for text in (row["throughput_mbps"], row["cpu_percent"]) if text]
        assert [float(text) for text in cell.text.split(" / ")] == numbers
