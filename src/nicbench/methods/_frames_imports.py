"""What is taken of frame rates of instances that others measured (docs/studies.md): a run's sum, an instance's own.

The published tables are one CSV of sums, one of instances and one of statistics; a row of any of them is a result.
"""

from __future__ import annotations

from typing import Any, Final

from nicbench.methods.base import Values
from nicbench.model.import_table import ImportColumn, ImportShare, ImportTable, ImportTotal
from nicbench.stats.frames_runs import INSTANCES, RATE, RUNS, SUM, SUMMARY, TARGET

MOST_INSTANCES: Final = 100_000
"""More editors than any server has: a greater number is a mistake of the file."""

_STATISTICS: Final = {
    "average_frames_per_s": ("average", "mean"),
    "median_frames_per_s": ("median",),
    "standard_deviation_frames_per_s": ("standard deviation", "std deviation", "stdev", "deviation"),
}


def _place(value: str, *, most: int | None = None, is_required: bool = False) -> ImportColumn:
    return ImportColumn(
        value=value,
        name=value,
        quantity="count",
        tells_apart=True,
        is_required=is_required,
        is_above_zero=True,
        most=most,
    )


IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(value=RATE, name="rate", quantity="media_rate", also=("fps", "instance rate")),
        ImportColumn(value=SUM, name="sum", quantity="media_rate", also=("fps sum", "sum of rates")),
        *(
            ImportColumn(value=value, name=names[0], quantity="media_rate", also=names[1:])
            for value, names in _STATISTICS.items()
        ),
        ImportColumn(value=TARGET, name="target", quantity="media_rate", is_above_zero=True),
        ImportColumn(
            value="dropped_frames", name="dropped frames", quantity="count", also=("dropped", "frames dropped")
        ),
        ImportColumn(value="due_frames", name="due frames", quantity="count", also=("due", "frames due")),
        ImportColumn(value="direction", name="direction", quantity="text", tells_apart=True, words=("read", "write")),
        _place("instances", most=MOST_INSTANCES, is_required=True),
        _place("run"),
        _place("instance", most=MOST_INSTANCES),
    ),
    any_of=(RATE, SUM, TARGET, *_STATISTICS),
    rising=(("dropped_frames", "due_frames"), ("instance", "instances")),
    totals=(ImportTotal(total=SUM, part=RATE, place="instance", number="instances"),),
    same_shares=(
        ImportShare(
            value=TARGET,
            place="instance",
            number="instances",
            among=("direction",),
            hint=(
                "a target is of all instances of its row together, on the row of an instance of that one; studies of "
                "several targets are told apart by --configuration COLUMN or chosen by --where COLUMN=VALUE"
            ),
        ),
    ),
    caption="Frames of film each second: of an instance, of all instances of a run, or over the runs.",
)


def frames_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """With the ``part`` that a row is of: an instance, a run, or what runs come to."""
    of_a_run = "run" in parameters or values.get(SUM) is not None
    part = INSTANCES if "instance" in parameters else RUNS if of_a_run else SUMMARY
    return {**parameters, "part": part}, values
