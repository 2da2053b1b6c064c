"""Text that does no harm: titles, host names and tools' words reach files that other programs read."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.reading import PortFigures
from nicbench.core.result import Erratum
from nicbench.store.files import json_text

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
"""What no text file should hold and XML 1.0 may not; tab and the ends of lines stay."""
_BEGINS_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheet programs take a cell for a formula by its first character, also a full-width one (CWE-1236)."""


def storable(text: str) -> str:
    """Text that can be written as UTF-8: halves of surrogate pairs, which JSON may spell, become U+FFFD."""
    if text.isascii():  # nearly all are, and there are millions of cells
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_deeply(value: Any) -> Any:
    """The same for every text in lists and dictionaries."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_deeply(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable_deeply(each) for each in value]
    return value


def replace_controls(text: str) -> str:
    """The same without control characters; each becomes U+FFFD, so that it is seen that something was there."""
    return _CONTROL.sub("\ufffd", storable(text))


def harmless_cell(text: str) -> str:
    """A cell of a CSV file that no spreadsheet program takes for a formula: such text gets an apostrophe before it."""
    clean = replace_controls(text)
    return f"'{clean}" if clean.startswith(_BEGINS_A_FORMULA) else clean


FORMAT = "1.3"
"""Of the document. A new key makes it 1.1; a key that is gone, or means something else, 2.0."""

Number = Annotated[int | float, Field(allow_inf_nan=False)]
"""As summary.json has it, to the last digit: a whole number stays one."""


class ExportedValue(Frozen):
    """One value of a result. ``name`` carries the unit, which ``unit`` repeats. Unknown is null, never 0.

    A ``spread`` is over runs: ``value`` is the median, ``lower`` and ``upper`` the least and the most of the runs.
    A ``rate`` was searched for: every trial passed up to ``lower``, and none from ``upper`` on.
    """

    name: str
    unit: str | None
    kind: Literal["number", "rate", "interval", "spread", "text", "unknown"]
    value: Number | None = None
    text: str | None = None
    lower: Number | None = None
    upper: Number | None = None
    some: Number | None = None
    """Since 1.3, as the next two: of a rate whose trials disagreed, the highest load that passed at all."""
    half: Number | None = None
    """Of such a rate: the load that half of the trials passed."""
    loss_floor_ratio: Number | None = None
    """The share of the frames that is lost at any load, where that is so: the value is then that of half of the trials.
    """
    at_least: bool | None = None
    """Of a rate or a spread: whether the true value may be higher."""
    limited_by: str | None = None
    """What stopped a rate from being higher: ``dut``, ``tester`` or ``line_rate``."""
    n: int | None = None
    """How many trials or runs are behind it."""
    runs: int | None = None
    """Of a spread: how many runs there were, with and without a value."""
    mean: Number | None = None
    """Of a spread of a main value: the mean of the runs; where their number grows, with its interval by Student's t."""
    mean_lower: Number | None = None
    mean_upper: Number | None = None
    mean_confidence_ratio: Number | None = None
    sample_standard_deviation: Number | None = None
    """Since 1.1, as what follows: of a spread of a main value. With n - 1 in the divisor."""
    population_standard_deviation: Number | None = None
    """With n in the divisor."""
    coefficient_of_variation: Number | None = None
    """The sample standard deviation over the absolute mean."""
    median_bootstrap_lower: Number | None = None
    median_bootstrap_upper: Number | None = None
    mean_bootstrap_lower: Number | None = None
    mean_bootstrap_upper: Number | None = None
    bootstrap_confidence_ratio: Number | None = None
    """Of these intervals, which are BCa of 10,000 resamples (docs/statistics.md)."""
    bootstrap_seed: int | None = None
    """Of their resamples."""
    outlier_runs: str | None = None
    """The numbers of runs beyond Tukey's fences, joined by commas; null of none. They count all the same."""
    reason_null: str | None = None
    near_limit: str | None = None
    """Why it may be the tester's own, in words."""
    printed: str | None = None
    """Of an imported value: as its source printed it."""
    printed_unit: str | None = None
    computed: bool = False
    """Of an imported value: it is not printed in the source, and follows from what is."""
    errata: tuple[Erratum, ...] = ()
    """Of an imported value: why what is printed cannot be so."""


class ExportedResult(Frozen):
    """One result: one test, one configuration, one set of parameters, of one run or over all (``span``)."""

    result: str
    """Its id in summary.json."""
    span: Literal["run", "over_runs"]
    test: str
    method: str
    configuration: str
    run: int | None
    """Of the configuration, from 1; null over all its runs."""
    warm_up: bool
    """Of a run that warms up: it counts for nothing."""
    scope: str
    """Whether rates are per port or the sum of ports."""
    verdict: str
    disturbances: tuple[str, ...]
    imported: bool
    """Not measured by nicbench."""
    imported_line: int | None = None
    """The line of the imported file."""
    samples: tuple[str, ...]
    """The ids of the trials or rounds behind it."""
    parameters: dict[str, Any]
    values: tuple[ExportedValue, ...]
    by_port: PortFigures | None = None


class RunOfExport(Frozen):
    """Of which run the results are."""

    run_id: str
    title: str
    started: str | None
    """Wall time, a label."""
    nicbench_version: str | None
    verdict: str
    finished: bool
    """Whether the run ended by itself; what there is of another is exported all the same."""
    changed_files: tuple[str, ...] = ()
    """What was changed in the run folder since, a sentence each."""
    configurations: tuple[str, ...] = ()
    imported: str | None = None
    """That it was not measured by nicbench."""
    source: str | None = None
    """Of imported results: title and year of what they are taken from."""


class ExportDocument(Frozen):
    """The whole of an export."""

    format: str = FORMAT
    run: RunOfExport
    results: tuple[ExportedResult, ...]


def export_schema() -> dict[str, Any]:
    """The schema as it follows from the model."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from nicbench.export.document.ExportDocument by `python -m nicbench.export.document`.",
        **ExportDocument.model_json_schema(mode="serialization"),
    }


def export_schema_text() -> str:
    """The content of docs/export.schema.json."""
    return json_text(export_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(export_schema_text(), end="")
