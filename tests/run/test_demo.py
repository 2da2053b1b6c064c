"""The demo, ten times over: what repeats, and what is marked as disturbed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from nicbench.core.result import ResultVerdict

from .lab_bench import rate_of, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.acceptance]

DEMO = Path(__file__).parents[2] / "examples" / "kernel-forward.yaml"
RUNS = 10
LARGEST_SPREAD = 0.15


def test_the_partial_drop_rates_of_undisturbed_runs_lie_within_15_percent(tmp_path: Path) -> None:
    rates = defaultdict(list)
    marked = defaultdict(int)
    for number in range(RUNS):
        summary, _ = run_bench(tmp_path, DEMO.read_text())
        for result in summary.results:
            if result.method != "throughput":
                continue
            size = result.parameters["frame_bytes"]
            rate = rate_of(result, "pdr")
            if result.verdict is ResultVerdict.VALID:
                # An undisturbed result without a rate agrees with none that has one.
                rates[size].append(rate.value or 0.0)
            else:
                marked[size] += 1
            shown = "none" if rate.value is None else f"{rate.value / 1e6:.4f}"
            upper = "" if rate.upper is None else f" to {rate.upper / 1e6:.4f}"
            limit = rate.limited_by.value if rate.limited_by else "-"
            print(
                f"run {number + 1}: {size} bytes PDR {shown}{upper} Mpps, {limit}, {result.verdict.value}", flush=True
            )
    spreads = {size: _spread(found) for size, found in sorted(rates.items())}
    for size, spread in spreads.items():
        print(f"{size} bytes: {len(rates[size])} undisturbed, spread {spread:.1%}, {marked[size]} of {RUNS} marked")
    results = sum(marked.values()) + sum(len(found) for found in rates.values())
    print(f"share marked: {sum(marked.values()) / results:.0%} of {results} results")
    assert rates, "every result of every run was marked: nothing is known of how well they repeat"
    assert all(spread <= LARGEST_SPREAD for spread in spreads.values()), spreads


def _spread(found: list[float]) -> float:
    """The widest distance of two, as a share of the lower."""
    if max(found) == min(found):
        return 0.0
    return (max(found) - min(found)) / min(found) if min(found) else float("inf")
