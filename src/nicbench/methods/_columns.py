"""Columns that several methods show."""

from __future__ import annotations

from typing import Final

from nicbench.model.table import Column

PAYLOAD_RATE: Final = Column(
    value="throughput_bits_per_s",
    head="Throughput",
    unit="Gb/s",
    form="gigabits",
    is_main=True,
    better="higher",
    comparative="faster",
)
"""What a workload's streams carried."""
