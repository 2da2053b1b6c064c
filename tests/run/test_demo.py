"""The demo, ten times over: what repeats, and what is marked as disturbed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from nicbench.model.result import ResultVerdict

from .lab_bench import rate_of, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.acceptance]

DEMO = Path(__file__).parents[2] / "examples" / "kernel-forward.yaml"
RUNS = 10
LARGEST_SPREAD = 0.15


def test_the_partial_drop_rates_of_undisturbed_runs_lie_within_15_percent(tmp_path: Path) -> None:
    rates: dict[int, list[float]] = defaultdict(list)
    marked: dict[int, int] = defaultdict(int)
    for number in range(RUNS):
        summary, _ = run_bench(tmp_path, DEMO.read_text())
        for result in summary.results:
            if result.method != "throughput":
                continue
            size = result.parameters["frame_bytes"]
            rate = rate_of(result, "pdr")
            if result.verdict is ResultVerdict.VALID and rate.value is not None:
                rates[size].append(rate.value)
            else:
                marked[size] += 1
            shown = "none" if rate.value is None else f"{rate.value / 1e6:.4f}"
            upper = "" if rate.upper is None else f" to {rate.upper / 1e6:.4f}"
            limit = rate.limited_by.value if rate.limited_by else "-"
            print(
                f"run {number + 1}: {size} bytes PDR {shown}{upper} Mpps, {limit}, {result.verdict.value}", flush=True
            )
    spreads = {size: (max(found) - min(found)) / min(found) for size, found in sorted(rates.items())}
    for size, spread in spreads.items():
        print(f"{size} bytes: {len(rates[size])} undisturbed, spread {spread:.1%}, {marked[size]} of {RUNS} marked")
    print(f"share marked: {sum(marked.values()) / (RUNS * len(rates)):.0%}")
    assert all(spread <= LARGEST_SPREAD for spread in spreads.values()), spreads
