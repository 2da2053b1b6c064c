"""Statistics that a table prints of its own rows: NumPy's and SciPy's are taken, others refused with the row."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nicbench.core.errors import WrongFileError
from nicbench.importing.folder import GivenFile, provenance, summary_of
from nicbench.importing.results import ImportedResults
from nicbench.report.imported import imported_view

Imported = Callable[..., ImportedResults]
HEADS = "instances,run,instance,rate [fps],sum [fps],average [fps],median [fps],stdev [fps],minimum [fps],maximum [fps]"


def of_runs(draw: random.Random, ddof: int, instances: int = 6, runs: int = 8) -> list[str]:
    """Rows of instances, of runs and of all runs, each statistic by NumPy or SciPy, printed to a tenth."""
    # So far apart that the two divisors give deviations that differ by more than a tenth.
    rates = np.array([[draw.gauss(60.0, 6.0) for _ in range(instances)] for _ in range(runs)])
    rows = [
        f"{instances},{run},{instance},{rates[run - 1, instance - 1]:.1f},,,,,,"
        for run in range(1, runs + 1)
        for instance in range(1, instances + 1)
    ]
    for run, of_run in enumerate(rates, 1):
        rows.append(f"{instances},{run},,,{of_run.sum():.1f},{statistics(of_run, ddof)}")
    return [HEADS, *rows, f"{instances},,,,,{statistics(rates.sum(axis=1), ddof)}"]


def statistics(values: np.ndarray, ddof: int) -> str:
    found = (np.mean(values), np.median(values), np.std(values, ddof=ddof), np.min(values), np.max(values))
    return ",".join(f"{one:.1f}" for one in found)


@pytest.mark.parametrize(("ddof", "divisor"), [(0, "the population’s, divisor n"), (1, "the sample’s, divisor n - 1")])
def test_statistics_of_numpy_and_scipy_are_possible_and_the_divisor_is_named(
    imported: Imported, draw: random.Random, ddof: int, divisor: str
) -> None:
    for _ in range(20):
        taken = imported("\n".join(of_runs(draw, ddof)), "frames")
        checks = {one.what: one.comparisons for one in taken.checks}
        assert checks[f"standard deviations with their instances ({divisor})"] == 8
        for what, number in (
            ("sums with their instances", 8),
            ("averages with their instances", 8),
            ("medians with their instances", 8),
            ("minima with their instances", 8),
            ("maxima with their instances", 8),
            ("averages with their runs", 1),
            ("medians with their runs", 1),
            (f"standard deviations with their runs ({divisor})", 1),
            ("minima with their runs", 1),
            ("maxima with their runs", 1),
        ):
            assert checks[what] == number, what


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2,1,,,51.0,,,,,", "sum 51.0 fps cannot be: 2 instances, the first on line 2, make another; computed: 50 fps"),
        ("2,1,,,,26.0,,,,", "average 26.0 fps cannot be: 2 instances, the first on line 2, have another"),
        ("2,1,,,,,26.0,,,", "median 26.0 fps cannot be: 2 instances, the first on line 2, have another"),
        ("2,1,,,,,,2.0,,", "standard deviation 2.0 fps cannot be: 2 instances, the first on line 2, have another"),
        ("2,1,,,,,,,23.0,", "minimum 23.0 fps cannot be: 2 instances, the first on line 2, have another"),
        ("2,1,,,,,,,,27.0", "maximum 27.0 fps cannot be: 2 instances, the first on line 2, have another"),
    ],
)
def test_a_statistic_is_refused_with_the_rows_that_it_contradicts(imported: Imported, row: str, said: str) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported("\n".join((HEADS, "2,1,1,24.0,,,,,,", "2,1,2,26.0,,,,,,", row)), "frames")
    assert said in str(refused.value)
    assert "x.csv:4:" in str(refused.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("4,1,,,100.0,26.0,,,,", "4 instances with a sum of 100.0 fps have another"),
        ("1,1,,,,,,0.3,,", "of one instance nothing deviates"),
        ("4,1,,,,,,9.0,24.0,26.0", "4 instances between this minimum and this maximum have another"),
        ("4,1,,,,27.0,,,24.0,26.0", "maximum 26.0 fps cannot be: it cannot be less than the average"),
    ],
)
def test_a_row_alone_is_held_against_itself(imported: Imported, row: str, said: str) -> None:
    with pytest.raises(WrongFileError, match=said):
        imported(f"{HEADS}\n{row}", "frames")


def test_where_some_instances_are_missing_only_what_cannot_be_is_refused(imported: Imported) -> None:
    known = (HEADS, "3,1,1,24.0,,,,,,", "3,1,2,26.0,,,,,,")
    assert imported("\n".join((*known, "3,1,,,75.0,25.0,25.0,0.8,24.0,26.0")), "frames").results
    with pytest.raises(WrongFileError, match="2 known ones of 3 instances"):
        imported("\n".join((*known, "3,1,,,49.0,,,,,")), "frames")


def test_statistics_over_runs_need_all_runs(imported: Imported) -> None:
    """Runs 1 and 3 alone do not tell the average of three."""
    sums = ("2,1,,,48.0,,,,,", "2,3,,,50.0,,,,,")
    assert imported("\n".join((HEADS, *sums, "2,,,,,48.2,,,,")), "frames").results
    with pytest.raises(WrongFileError, match="3 runs, the first on line 2, have another"):
        imported("\n".join((HEADS, *sums, "2,2,,,49.0,,,,,", "2,,,,,48.2,,,,")), "frames")


def test_zeros_that_a_spreadsheet_leaves_out_are_digits(imported: Imported) -> None:
    rows = [f"2,{run},{instance},{rate},,,,,," for run in range(1, 6) for instance, rate in ((1, "25"), (2, "25.1"))]
    assert imported("\n".join((HEADS, *rows, "2,1,,,50.1,,,,,")), "frames").results
    with pytest.raises(WrongFileError, match="make another"):
        imported("\n".join((HEADS, *rows, "2,1,,,50.3,,,,,")), "frames")


def test_significant_digits_are_not_taken_for_missing_zeros(imported: Imported) -> None:
    """Of three digits 100 is known to 0.5, whereas 99.5 is known to 0.05."""
    rows = [f"8,1,{number},{rate},,,,,," for number, rate in enumerate(("99.1",) * 6 + ("100", "100"), 1)]
    assert imported("\n".join((HEADS, *rows, "8,1,,,795.2,,,,,")), "frames").results


def test_ports_measured_alone_do_not_make_all_ports(imported: Imported) -> None:
    rows = ("port,throughput [Mb/s]", "1,90.0", "2,91.0", "all,150.0")
    assert imported("\n".join(rows), "stream").results
    together = ("port,at once,throughput [Mb/s]", "1,2 ports,90.0", "2,2 ports,91.0", "all,2 ports,150.0")
    with pytest.raises(WrongFileError, match="2 ports, the first on line 2, make another; computed: 181 Mb/s"):
        imported("\n".join(together), "stream")


def test_a_back_to_back_value_is_between_its_extremes_and_deviates_no_further(imported: Imported) -> None:
    heads = "frame size,back-to-back value,minimum,maximum,std. deviation,repetitions"
    assert imported(f"{heads}\n64,105.0,100,110,2.1,50", "back-to-back").results
    with pytest.raises(WrongFileError, match="50 repetitions between this minimum and this maximum have another"):
        imported(f"{heads}\n64,105.0,100,110,7.0,50", "back-to-back")


def test_counts_are_the_sum_of_their_parts(imported: Imported) -> None:
    heads = "frame size,load [% of line rate],loss [%],offered frames,returned frames,lost frames"
    assert imported(f"{heads}\n64,100,10.0,1000,900,100", "frame-loss").results
    with pytest.raises(WrongFileError, match="901 frames and 100 frames make another; computed: 1001 frames"):
        imported(f"{heads}\n64,100,10.0,1000,901,100", "frame-loss")


def test_the_report_says_what_was_compared_and_how_often(imported: Imported) -> None:
    taken = imported(
        "\n".join((HEADS, "2,1,1,24.0,,,,,,", "2,1,2,26.0,,,,,,", "2,1,,,51.0,,,,,")), "frames", errata=True
    )
    known = provenance(
        (GivenFile(Path("x.csv"), b""),), taken, source=None, year=None, device=None, method="frames", format="plain"
    )
    view = imported_view(summary_of("x", taken, known))
    assert "sums with their instances: 1. One cell is an erratum." in view.checked
