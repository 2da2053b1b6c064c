"""The tables of film frames: details of each number of instances, of each instance, and what imports say of all runs.

Sums, streams sustained and the figures come before them, from the same results (``editors``, report/editors).
"""

from __future__ import annotations

from typing import Final

from nicbench.methods._failures import SILENT
from nicbench.model.table import Column, ResultTable
from nicbench.stats.frames_runs import BYTES, INSTANCES, RATE, RUNS, SUM, TARGET

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
            "complete. MB/s are 10^6 bytes. Of several runs: the median, and beneath it the least and the greatest."
        ),
        columns=(
            _DIRECTION,
            _INSTANCES,
            _rate(SUM, "Sum", is_main=True),
            *_COMPLETION,
            Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
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
            Column(value="cpu_per_frame_ns", head="CPU of a frame", unit="us", form="microseconds"),
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
