"""The columns of imported back-to-back results: the longest burst, over how many searches, and what follows from it."""

from __future__ import annotations

from typing import Final

from nicbench.methods._imports import LINE_RATE, SIZE, interval
from nicbench.model.import_table import ImportColumn, ImportTable

_LONGEST: Final = ImportColumn(
    value="back_to_back_frames",
    name="back-to-back value",
    quantity="number",
    also=("back to back", "back-to-back frames", "longest burst", "burst", "average"),
)
BACK_TO_BACK_IMPORTS: Final = ImportTable(
    columns=(
        *(SIZE, *interval(_LONGEST)),
        ImportColumn(value="minimum_frames", name="minimum", quantity="count", also=("min",)),
        ImportColumn(value="maximum_frames", name="maximum", quantity="count", also=("max",)),
        ImportColumn(value="standard_deviation_frames", name="std. deviation", quantity="number"),
        ImportColumn(value="repetitions", name="repetitions", quantity="count", also=("N", "trials")),
        ImportColumn(value="burst_frames_per_s", name="burst rate", quantity="frame_rate"),
        ImportColumn(value="percent_of_line_rate", name="% of line rate", quantity="percent"),
        ImportColumn(value="throughput_frames_per_s", name="throughput", quantity="frame_rate"),
        ImportColumn(value="implied_buffer_time_us", name="implied buffer time", quantity="time"),
        ImportColumn(value="corrected_buffer_time_us", name="corrected buffer time", quantity="time"),
        ImportColumn(value="corrected_buffer_frames", name="corrected buffer", quantity="number"),
        LINE_RATE,
    ),
    any_of=(_LONGEST.value,),
    line_rate=LINE_RATE.value,
    shares=(("burst_frames_per_s", "percent_of_line_rate"),),
    rising=(
        ("minimum_frames", _LONGEST.value, "maximum_frames"),
        ("corrected_buffer_time_us", "implied_buffer_time_us"),
    ),
    caption="The longest burst of which nothing was lost (RFC 2544 section 26.4).",
)
