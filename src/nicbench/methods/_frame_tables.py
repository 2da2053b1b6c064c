"""Tables and imported columns of media frames, for instances and for their sums."""

from __future__ import annotations

from typing import Any, Final

from nicbench.core.table import Column, ImportColumn, ImportShare, ImportStatistics, ImportTable, ResultTable
from nicbench.methods._failures import SILENT
from nicbench.methods._round_figures import CLIENT_OWN_CPU, SERVER_OWN_CPU
from nicbench.methods.base import Values
from nicbench.stats.frames import BYTES, INSTANCES, RATE, RUNS, SUM, SUMMARY, TARGET

_DIRECTION: Final = Column(value="direction", head="Direction", form="text")
_INSTANCES: Final = Column(value="instances", head="Instances", form="whole")
_UNIT: Final = "fps"
_DROPPED: Final = (
    Column(value="dropped_frames", head="Frames dropped", form="whole"),
    Column(value="due_frames", head="of frames due", form="whole"),
)


def _rate(value: str, head: str, *, is_main: bool = False) -> Column:
    return Column(
        value=value, head=head, unit=_UNIT, form="trimmed", is_main=is_main, better="higher", comparative="faster"
    )


def _time(value: str, head: str) -> Column:
    return Column(value=f"{value}_ns", head=head, unit="ms", form="milliseconds")


_COMPLETION: Final = (
    _time("completion_p50", "Completion, median"),
    _time("completion_p99", "p99"),
    _time("completion_maximum", "greatest"),
    _time("lateness_p99", "Lateness, p99"),
    _time("lateness_maximum", "greatest"),
)
_BYTES: Final = Column(value=BYTES, head="Bytes", unit="MB/s", form="megabytes")

TABLES: Final = (
    ResultTable(
        part=RUNS,
        editors=True,
        has_basis=False,
        title="Frames: all instances of a run together",
        caption=(
            "Completion is the time to open, move and close a frame; lateness is how long after its time a frame was "
            "complete. MB/s are 10⁶ bytes. Of several runs: the median, with the lowest and the highest beneath it."
        ),
        columns=(
            _DIRECTION,
            _INSTANCES,
            _rate(SUM, "Sum", is_main=True),
            *_COMPLETION,
            SERVER_OWN_CPU,
            Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
            CLIENT_OWN_CPU,
            Column(value="client_cpu_mean_percent", head="Clients' CPU, mean", unit="%", form="number"),
            Column(value="limited_by", head="Limited by", form="text"),
            _rate("average_frames_per_s", "Average of an instance"),
            _rate("standard_deviation_frames_per_s", "Std. Deviation (population)"),
            _rate("minimum_frames_per_s", "Least"),
            _rate("maximum_frames_per_s", "Greatest"),
            _BYTES,
            *_DROPPED,
        ),
    ),
    ResultTable(
        part=INSTANCES,
        editors=True,
        has_basis=False,
        title="Frames: each instance",
        caption="As in the table before, of one instance. CPU of a frame is that of its process and the kernel for it.",
        columns=(
            _DIRECTION,
            _INSTANCES,
            Column(value="instance", head="Instance", form="whole"),
            Column(value="client", head="Client", form="text"),
            Column(value="directory", head="Folder", form="text"),
            _rate(RATE, "Rate", is_main=True),
            _BYTES,
            *_DROPPED,
            *_COMPLETION,
            Column(value="cpu_per_frame_ns", head="CPU of a frame"),
            Column(value="engine", head="Engine", form="text"),
            Column(value="bond_port", head="Port of the bond", form="text", is_optional=True),
            SILENT,
        ),
    ),
    ResultTable(
        part="summary",
        has_basis=False,
        title="Frames: what the source prints over its runs",
        caption="Over all runs, of the sums of their instances.",
        columns=(
            _DIRECTION,
            _INSTANCES,
            _rate("average_frames_per_s", "Average", is_main=True),
            _rate("median_frames_per_s", "Median", is_main=True),
            _rate(TARGET, "Target"),
            _rate("standard_deviation_frames_per_s", "Std. Deviation"),
        ),
    ),
)


MOST_INSTANCES: Final = 100_000
"""The largest plausible number of instances, more than any server has; a greater number is a mistake of the file."""

_STATISTICS: Final = {
    "average_frames_per_s": ("average", "mean"),
    "median_frames_per_s": ("median",),
    "standard_deviation_frames_per_s": ("standard deviation", "std deviation", "stdev", "deviation"),
    "minimum_frames_per_s": ("minimum", "min", "least"),
    "maximum_frames_per_s": ("maximum", "max", "greatest"),
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


_ROLES: Final = {
    "average": "average_frames_per_s",
    "median": "median_frames_per_s",
    "deviation": "standard_deviation_frames_per_s",
    "minimum": "minimum_frames_per_s",
    "maximum": "maximum_frames_per_s",
}
_OF_INSTANCES: Final = {"parts": "instances", "place": "instance", "number": "instances", "of": "run"}

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
    rising=(
        ("dropped_frames", "due_frames"),
        ("instance", "instances"),
        *((_ROLES["minimum"], _ROLES[middle], _ROLES["maximum"]) for middle in ("average", "median")),
    ),
    statistics=(
        ImportStatistics(part=RATE, total=SUM, **_OF_INSTANCES, **_ROLES),
        ImportStatistics(part=SUM, parts="runs", place="run", below=("instance",), **_ROLES),
        ImportStatistics(part="dropped_frames", total="dropped_frames", **_OF_INSTANCES),
        ImportStatistics(part="due_frames", total="due_frames", **_OF_INSTANCES),
    ),
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
    """Adds the ``part`` that an imported row belongs to: an instance, a run, or the summary of runs."""
    of_a_run = "run" in parameters or values.get(SUM) is not None
    part = INSTANCES if "instance" in parameters else RUNS if of_a_run else SUMMARY
    return {**parameters, "part": part}, values
