"""What is taken of frame rates of instances that somebody else measured (methods.md 1): a run's sum, an instance's own.

The published tables are one CSV of sums, one of instances and one of statistics; a row of any of them is a result.
"""

from __future__ import annotations

from typing import Any, Final

from nicbench.methods.base import Values
from nicbench.model.import_table import ImportColumn, ImportTable
from nicbench.stats.frames_runs import INSTANCES, RATE, RUNS, SUM

_STATISTICS: Final = {
    "average_frames_per_s": ("average", "mean"),
    "median_frames_per_s": ("median",),
    "target_frames_per_s": ("target",),
    "standard_deviation_frames_per_s": ("standard deviation", "std deviation", "stdev", "deviation"),
}

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(value=RATE, name="rate", quantity="media_rate", also=("fps", "instance rate")),
        ImportColumn(value=SUM, name="sum", quantity="media_rate", also=("fps sum", "sum of rates")),
        *(
            ImportColumn(value=value, name=names[0], quantity="media_rate", also=names[1:])
            for value, names in _STATISTICS.items()
        ),
        ImportColumn(value="dropped_frames", name="dropped frames", quantity="count"),
        ImportColumn(value="due_frames", name="due frames", quantity="count"),
        ImportColumn(value="direction", name="direction", quantity="text", tells_apart=True),
        ImportColumn(value="instances", name="instances", quantity="count", tells_apart=True, is_required=True),
        ImportColumn(value="run", name="run", quantity="count", tells_apart=True),
        ImportColumn(value="instance", name="instance", quantity="count", tells_apart=True),
    ),
    any_of=(RATE, SUM, *_STATISTICS),
    rising=(("dropped_frames", "due_frames"), ("instance", "instances")),
    caption="Frames of film each second: of an instance, of all instances of a run, or over the runs.",
)


def frames_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """With the ``part`` that a row is of: an instance, a run, or what runs come to."""
    of_a_run = "run" in parameters or values.get(SUM) is not None
    part = INSTANCES if "instance" in parameters else RUNS if of_a_run else "summary"
    return {**parameters, "part": part}, values
