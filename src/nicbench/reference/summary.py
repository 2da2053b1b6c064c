"""A data set as the summary and the plan of a run: for an import of it, and to be laid beside a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicbench.importing.files import GivenFile
from nicbench.importing.folder import plan_of, provenance, summary_of
from nicbench.model.plan import Plan
from nicbench.model.result import Summary
from nicbench.reference.descriptor import DataSet
from nicbench.reference.reading import options_of, results_of


@dataclass(frozen=True, slots=True)
class AsRun:
    """``said`` is how its table was read, for import.json."""

    files: tuple[GivenFile, ...]
    summary: Summary
    said: dict[str, Any]

    def plan(self, run_id: str) -> Plan:
        """As little as is known of how it was measured."""
        return plan_of(run_id, self.summary, self.said, ())


def as_run(chosen: DataSet) -> AsRun:
    """UsageError where no method takes it as results."""
    found = results_of(chosen)
    reading = chosen.reading
    assert reading is not None  # noqa: S101 - results_of() refused it otherwise
    options = options_of(reading)
    files = (GivenFile(Path(chosen.table), chosen.content()),)
    known = provenance(
        files,
        found,
        source=chosen.source,
        year=chosen.year,
        device=None,
        method=reading.method,
        format=reading.form,
    )
    said = {
        "method": reading.method,
        "format": reading.form,
        "reference": chosen.name,
        "pdr_loss_ratio": options.loss_ratio,
        "link_bits_per_s": options.link.bits_per_s if options.link else None,
        "columns": {one.head.text: one.key for one in found.columns},
    }
    return AsRun(files, summary_of(chosen.title, found, known), said)
