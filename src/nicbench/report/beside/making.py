"""Makes the page of a comparison from what is named: found, matched, checked whether they may be, laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nicbench.compare.conditions import conditions_of
from nicbench.compare.matching import MatchedEntries, match_points
from nicbench.compare.merged_summary import divide_by_ports
from nicbench.compare.naming import name_entries
from nicbench.compare.objections import Objection, find_objections
from nicbench.compare.opening import entries_of
from nicbench.compare.settings import Settings, compare_settings
from nicbench.core.errors import UsageError
from nicbench.core.result import Result
from nicbench.report.answer.of_entries import title_of
from nicbench.report.beside.page import Page, page_of


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison, and what it was made of."""

    found: MatchedEntries
    against: Sequence[Objection]
    known: Settings
    page: Page


def compare(
    references: Sequence[str],
    runs_folder: Path,
    find_tagged: Callable[[str], list[Path]],
    *,
    command: str,
    title: str | None = None,
    force: bool = False,
    per_port: bool = False,
) -> Comparison:
    """Compares what ``references`` name, as `nicbench compare` takes them; ``command`` is printed on the page.

    UsageError, with every reason, where they may not be compared; where nothing is in common also with ``force``.
    """
    entries = name_entries(entries_of(list(references), runs_folder, find_tagged, damaged=force))
    remarks: tuple[str, ...] = ()
    if per_port:
        entries, remarks = divide_by_ports(entries)
    found = match_points(entries)
    against = find_objections([conditions_of(entry) for entry in found.entries])
    _refuse(found, against, force=force)
    known = compare_settings(found.entries)
    page = page_of(found, against, known, title=title or title_of(found.entries), remarks=remarks, command=command)
    return Comparison(found, against, known, page)


def _measured_by(results: Sequence[Result]) -> str:
    """Each test with its frame sizes, for a reader: "throughput (64, 1518 bytes), latency (64, 1518 bytes)"."""
    sizes: dict[str, dict[str, None]] = {}
    for result in results:
        known = sizes.setdefault(result.test or result.method, {})
        if (size := result.parameters.get("frame_bytes")) is not None:
            known[str(size)] = None
    return ", ".join(f"{test} ({', '.join(known)} bytes)" if known else test for test, known in sizes.items())


def _refuse(found: MatchedEntries, against: Sequence[Objection], *, force: bool) -> None:
    """Raises UsageError with every reason; where nothing is in common also with ``--force``."""
    if not found.common:
        tests = "; ".join(f"{entry.name}: {_measured_by(entry.results)}" for entry in found.entries[:4])
        raise UsageError(
            f"they have no point in common: the same test at the same frame size or load ({tests})",
            place=", ".join(entry.run_id for entry in found.entries[:4]),
            next_step="compare runs that measured the same; `nicbench diff RUN RUN` shows what differs",
        )
    blocking = [one for one in against if one.blocks]
    if blocking and not force:
        steps = dict.fromkeys(one.next_step for one in blocking if one.next_step)
        reasons = "".join(f"\n  - {one.text}" for one in blocking)
        raise UsageError(
            f"these are not comparable:{reasons}",
            next_step="; ".join([*steps, "--force compares them all the same, and says so in red"]),
        )
