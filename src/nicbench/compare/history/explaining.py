"""What differed between the run before a change and the first after it, and whether these may be compared at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nicbench.compare.finished_runs import find_objections, require_finished
from nicbench.compare.run_differences import Difference, find_differences
from nicbench.core.errors import NicbenchError
from nicbench.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Explanation:
    """What two runs disclose. ``objections`` say why they must not be compared; ``trouble`` why nothing is known."""

    objections: tuple[str, ...] = ()
    settings: tuple[Difference, ...] = ()
    trouble: str | None = None


def explain(before: Path, after: Path) -> Explanation:
    """Finds what differs between two run folders, the most important first."""
    try:
        runs = [require_finished(RunFolder.open(path)) for path in (before, after)]
        for run in runs:
            if isinstance(run, str):
                return Explanation(trouble=run)
        one, other = (run for run in runs if not isinstance(run, str))
        objections = find_objections(other, one)
        settings = () if other.folder.is_imported else find_differences(one.folder, other.folder).settings
        return Explanation(objections, settings)
    except NicbenchError as error:
        return Explanation(trouble=f"a run cannot be read: {error.message}")
    except OSError as error:
        return Explanation(trouble=f"a run cannot be read: {error.strerror}")
