"""Sentences of a report: in the unit of their table, and of which line of a curve they speak."""

from __future__ import annotations

from typing import Any

from nicbench.core.result import Result, ResultVerdict
from nicbench.report.answer.sentences import statement_of
from nicbench.report.numbers import basis_words
from nicbench.report.tables import sections


def result(method: str, parameters: dict[str, Any], values: dict[str, Any], number: int = 1) -> Result:
    return Result(
        id=f"t/{number}",
        method=method,
        scope="per port",
        parameters=parameters,
        values=values,
        verdict=ResultVerdict.VALID,
    )


def test_a_slow_rate_is_in_megabits_in_heading_and_sentence_and_a_port_is_named_once() -> None:
    about = {"part": "ports", "mode": "10 Mb/s", "at_once": "each port alone", "port": "port 1"}
    (section,) = sections([result("stream", about, {"throughput_bits_per_s": 6.86e6})], {})
    assert section.sentence == "moves 6.86\u00a0Mb/s over port 1 (10 Mb/s)"
    assert [column.unit for column in section.table.columns if column.head == "Throughput"] == ["Mb/s"]


def test_a_fast_rate_stays_in_gigabits() -> None:
    about = {"part": "ports", "mode": "25 Gb/s", "at_once": "each port alone", "port": "eth0"}
    (section,) = sections([result("stream", about, {"throughput_bits_per_s": 23.5e9})], {})
    assert section.sentence == "moves 23.5\u00a0Gb/s over port eth0 (25 Gb/s)"


def test_a_sweep_over_link_modes_says_of_which_mode_its_figure_is() -> None:
    def of(mode: str, share: float, number: int) -> Result:
        about = {"size": "64", "mode": mode, "ports": 2, "load_percent": 100.0, "load_of": "line rate"}
        return result("load-sweep", about, {"returned_percent": share}, number)

    (section,) = sections([of("10 Mb/s", 99.0, 1), of("100 Mb/s", 27.0, 2)], {})
    assert section.sentence is not None
    first, _, worst = section.sentence.partition("; at worst it ")
    assert first.endswith("of 64-byte frames intact at 100\u00a0% of line rate (10 Mb/s)")
    assert worst.startswith("returns 27")
    assert worst.endswith("(100 Mb/s)")


def test_no_latency_without_the_loss_beside_it() -> None:
    """At the PDR frames are lost: those that came back say nothing of those that did not."""
    about = {"size": "64", "frame_bytes": 64, "load_percent": 100.0, "load_of": "PDR"}
    found = {"latency_p50_ns": 20_000, "latency_p99_9_ns": 90_000, "loss_ratio": 0.0434}
    lossy = result("latency", about, found).replace(verdict=ResultVerdict.DISTURBED)
    (section,) = sections([lossy], {})
    (row,) = section.rows
    assert dict(zip([column.head for column in section.table.columns], row.cells, strict=True))["Lost"] == "4.34"
    assert statement_of(section) == (
        "At 100 % of the PDR, half of the 64-byte frames pass within 20.0\u00a0µs and 99.9 % within 90.0\u00a0µs. "
        "Frames lost in that trial: 4.34\u00a0%. Not reliable: the trials were disturbed."
    )
    (section,) = sections([result("latency", about, {**found, "loss_ratio": 0.0})], {})
    assert "ost" not in str(statement_of(section))


def test_a_basis_is_said_in_words() -> None:
    assert basis_words("sum of 2 ports") == "the sum of 2 ports"
    assert basis_words("per port") == "per port"
