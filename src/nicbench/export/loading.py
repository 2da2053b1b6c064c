"""``nicbench.load``: a run for Python, as typed results and Arrow tables. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence, Set
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.plan import Plan
from nicbench.core.result import Result, Summary
from nicbench.export.document import ExportDocument
from nicbench.export.source import document_of, summary_of
from nicbench.export.tables import long_table, wide_table
from nicbench.store.folder import RunFolder
from nicbench.store.listing import open_run

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_RUNS = Path("runs")


@frozen
class LoadedRun:
    """A run that was read. Its frames are ``pyarrow.Table``; ``.to_pandas()`` makes each a pandas data frame.

    Units are in the names of columns, and in the metadata of their fields (``table.schema.field(name).metadata``).
    """

    folder: RunFolder
    summary: Summary
    """Of a run that is not finished: its results so far, and the verdict ``incomplete``."""
    document: ExportDocument
    """Every result in one shape, whatever the method: what ``nicbench export --to json`` writes."""

    @property
    def run_id(self) -> str:
        """The name of the run folder."""
        return self.folder.run_id

    @property
    def results(self) -> tuple[Result, ...]:
        """Every result of every run, those that warm up too (``result.warm_up``)."""
        return self.summary.results

    @property
    def plan(self) -> Plan | None:
        """The resolved bench file; None where the run ended before."""
        return self.folder.plan()

    def results_frame(self) -> pa.Table:
        """A row for each result, a column for each value."""
        from nicbench.export.arrow import arrow_table

        return arrow_table(wide_table(self.document))

    def values_frame(self) -> pa.Table:
        """A row for each value of each result, with the same columns whatever the method."""
        from nicbench.export.arrow import arrow_table

        return arrow_table(long_table(self.document))

    def trials_frame(self) -> pa.Table:
        """A row for each trial; none where the run has rounds."""
        from nicbench.export import arrow

        return arrow.trials(self.folder)

    def rounds_frame(self) -> pa.Table:
        """A row for each job of each round; none where the run has trials."""
        from nicbench.export import arrow

        return arrow.rounds(self.folder)

    def frames_frame(self, columns: Sequence[str] | None = None, *, rounds: Sequence[str] | None = None) -> pa.Table:
        """Every media frame's times of method ``frames``; of some columns and rounds (``r0001``) alone, if so asked."""
        from nicbench.export import arrow

        return arrow.frames(self.folder, columns, rounds)

    def monitor_frame(self, metrics: Sequence[str] | None = None) -> pa.Table:
        """What the machines' monitors sampled, a row for each value; of some metrics alone, if so asked.

        UsageError where a metric was not sampled in this run.
        """
        from nicbench.store import monitor_samples

        found = monitor_samples.read(self.folder.path, None if metrics is None else tuple(metrics))
        table = monitor_samples.SCHEMA.empty_table() if found is None else found.table
        missing = set(metrics or ()) - set(table["metric"].unique().to_pylist())
        if missing:
            raise self._not_sampled(missing)
        return table

    def _not_sampled(self, metrics: Set[str]) -> UsageError:
        sampled = sorted(set(self.monitor_frame()["metric"].unique().to_pylist()))
        advice = f"it sampled {', '.join(sampled)}" if sampled else "it sampled nothing"
        return UsageError(f"the monitor of this run did not sample {', '.join(sorted(metrics))}", next_step=advice)


def load(run: str | PathLike[str], *, runs: str | PathLike[str] = DEFAULT_RUNS) -> LoadedRun:
    """The run of this folder, of this id under ``runs``, or the ``latest`` there.

    UsageError if it does not exist; HostError, with the file's name, where it is damaged.
    """
    folder = open_run(str(run), Path(runs))
    summary = summary_of(folder)
    return LoadedRun(folder, summary, document_of(folder, summary))
