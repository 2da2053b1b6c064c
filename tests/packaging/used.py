"""All that a user does with a program whose Python was pruned: measure, report, export, compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

EXPORTS = ("badge", "csv", "json", "junit", "openmetrics", "parquet", "xlsx")

STATISTICS = """
import numpy as np
from nicbench.stats.drift import split_at_changes
from nicbench.stats.critical_load import Posterior
from nicbench.stats.intervals import mean_interval, share_interval
from nicbench.stats.compare import Exactness, mann_whitney, signed_ranks

draw = np.random.default_rng(1)
rates = [1e5 * (1 - 0.4 * share) for share in draw.uniform(0.1, 0.8, 15)]
many = [float(value) for value in draw.normal(size=200)]
assert mann_whitney(many, many[1:]).exactness is Exactness.APPROXIMATE
assert signed_ranks(many).exactness is Exactness.APPROXIMATE
mean_interval(many, 0.95, 0.01)
share_interval(3, 9)
assert split_at_changes([*rates, *(rate / 2 for rate in rates)]) == (15,)
print("statistics computed")
"""
"""Statistics of many values, which the runs of this test do not have: tests on few values count outcomes."""


def use_all_of(nicbench: Callable[[str], str], python: Callable[[str], str], runs: str, seen_at: Path) -> None:
    """Measures a simulated DUT twice and does with these runs what can be done; ``seen_at`` is ``runs`` from outside.

    ``nicbench`` and ``python`` run these programs with arguments, as the shell has them, and give what they said.
    """
    for _ in range(2):
        assert "report: " in nicbench(f"demo --simulated --runs {runs} --no-progress")
    first, second = sorted(path.name for path in seen_at.glob("*-simulated-dut*"))
    nicbench(f"report {first} --runs {runs} --format all")
    assert (seen_at / first / "report.pdf").read_bytes().startswith(b"%PDF")
    for kind in EXPORTS:
        nicbench(f"export {first} --runs {runs} --to {kind} --out {runs}/exported.{kind}")
        assert (seen_at / f"exported.{kind}").stat().st_size > 200
    for table in ("trials", "values"):
        nicbench(f"export {first} --runs {runs} --to parquet --table {table} --out {runs}/{table}.parquet")
    (seen_at / "compared").mkdir()
    nicbench(f"compare {first} {second} --runs {runs} --out {runs}/compared")
    assert list((seen_at / "compared").glob("*.html"))
    nicbench(f"check {second} --against {first} --runs {runs} || true")
    loaded = f"import nicbench; print(nicbench.load('{runs}/{first}').values_frame().num_rows)"
    assert int(python(f'-c "{loaded}"').split()[-1]) > 5
    assert "statistics computed" in python(f"-c '{STATISTICS}'")
