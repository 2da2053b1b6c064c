"""Results so near to the tester's own limits that they may be the tester's: said beside the table."""

from __future__ import annotations

from nicbench.report.model import LatencyTable, ThroughputTable

NEAR_CEILING = 0.95
NEAR_LATENCY = 2.0


def near_ceiling(table: ThroughputTable) -> tuple[str, ...]:
    """Frame sizes at which a rate is at least 95 % of what the tester sends without a DUT."""
    return tuple(
        row.size_words
        for row in table.rows
        if row.ceiling_frames_per_s
        and any(
            rate.value is not None and rate.value >= NEAR_CEILING * row.ceiling_frames_per_s
            for rate in row.rates.values()
        )
    )


def near_own_latency(table: LatencyTable) -> tuple[str, ...]:
    """Frame sizes at which the median is less than twice the tester's own over a cable in the DUT's place."""
    sizes = []
    for row in table.rows:
        own, median = row.values.get("tester_latency_p50_ns"), row.values.get("latency_p50_ns")
        if own is not None and median is not None and median < NEAR_LATENCY * own:
            sizes.append(row.size_words)
    return tuple(sizes)
