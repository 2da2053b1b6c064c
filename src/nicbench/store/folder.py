"""The run folder: everything about one run. It is made, filled by the journal, finished, and then left alone."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from nicbench.errors import HostError, UsageError
from nicbench.model.plan import Plan
from nicbench.model.result import Summary
from nicbench.redaction import Redactor
from nicbench.store import manifest, reading
from nicbench.store.files import damaged_error, json_text, storage_error, sync_folder, write_atomically
from nicbench.store.json_place import line_of
from nicbench.store.names import BENCH, ERROR, IMPORT, JOURNAL, PLAN, SUMMARY

if TYPE_CHECKING:
    from nicbench.methods.base import Measures
    from nicbench.store.journal import Journal

RAW = "raw"
FRAMES = "frames"
"""Every frame's times, a file for each round (``frame_samples``)."""
SHOWN = frozenset(
    {BENCH, IMPORT, JOURNAL, SUMMARY, PLAN, "inventory.json", "tuning.json", "monitor.parquet", "monitor.ndjson"}
)
"""What is read of a run to show or compare it. The others are for other programs."""
_FIRST = (BENCH, IMPORT)
"""A run folder holds one of them from its beginning."""
_LONGEST_SLUG = 48

Kind = TypeVar("Kind", bound=BaseModel)


class RunFolder:
    """A run folder on disk; made by ``create``, found again by ``open``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.redactor: Redactor | None = None

    @functools.cached_property
    def journal(self) -> Journal:
        """Its journal. Who reads the summary alone needs none of the events in it."""
        from nicbench.store.journal import Journal

        return Journal(self.path / JOURNAL, before_reopening=self._unfinish)

    @classmethod
    def create(cls, parent: Path, bench_text: str, title: str) -> RunFolder:
        """Makes ``parent/2026-01-31T120000Z-slug-of-title`` with the bench file in it; the name is unique."""
        return cls(_made(parent, title, BENCH, bench_text))

    @classmethod
    def create_imported(cls, parent: Path, content: dict[str, Any], title: str) -> RunFolder:
        """The same for results that somebody else measured: ``content`` says how they were read."""
        folder = cls(_made(parent, title, IMPORT, json_text(content) + "\n"))
        try:
            folder.raw.mkdir()
        except OSError as error:
            raise storage_error(error, folder.raw) from error
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a run that was made before; UsageError where it is none."""
        look = "`nicbench list` shows the runs there are"
        if not path.exists():
            raise UsageError("there is no such folder", place=str(path), next_step=look)
        if not path.is_dir():
            raise UsageError("is a file, not the folder of a run", place=str(path), next_step=look)
        try:
            is_run = is_run_folder(path)
        except OSError as error:
            raise storage_error(error, path) from error
        if not is_run:
            raise UsageError(f"is not the folder of a run: it holds no {BENCH}", place=str(path), next_step=look)
        _refuse_ruin(path)
        return cls(path.resolve())

    def redact_with(self, redactor: Redactor) -> None:
        """From now on nothing is written but what ``redactor`` leaves of it: plan, inventory, tuning, events.

        Trials and results are counts and times, and are written as they are; the bench file is its author's own words.
        """
        self.redactor = redactor
        self.journal.redact = redactor

    @property
    def is_imported(self) -> bool:
        """Whether its results were measured by somebody else."""
        return (self.path / IMPORT).is_file()

    @property
    def raw(self) -> Path:
        """The folder for what others wrote, as they wrote it."""
        return self.path / RAW

    @property
    def bench_text(self) -> str:
        """The bench file as given; of an import, how its file was read."""
        path = self.path / (IMPORT if self.is_imported else BENCH)
        try:
            return reading.text(path)
        except FileNotFoundError as error:
            raise storage_error(error, path) from error

    @property
    def finished(self) -> bool:
        """Whether ``finish`` has been reached and nothing was appended since."""
        return (self.path / manifest.NAME).is_file()

    @property
    def holds_outputs(self) -> bool:
        """Whether something is in it that a tool wrote, or the text of a crash."""
        outputs = (self.raw, self.path / FRAMES)
        return (self.path / ERROR).is_file() or any(each.is_file() for one in outputs for each in one.rglob("*"))

    def write_json(self, name: str, content: BaseModel | dict[str, Any] | list[Any]) -> None:
        """Writes a JSON file of the folder, all or nothing; keys keep their order, which a report shows."""
        if self.redactor is not None:
            content = self.redactor(json.loads(json_text(content)))
        write_atomically(self.path / name, (json_text(content) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the folder, None where there is none (the run ended before it was written)."""
        path = self.path / name
        try:
            return reading.parsed(path)
        except FileNotFoundError:
            return None

    def plan(self) -> Plan | None:
        """The plan, None where the run ended before it was written."""
        return self._model(PLAN, Plan)

    def summary(self) -> Summary | None:
        """The summary, None where the run is not finished."""
        return self._model(SUMMARY, Summary)

    def finish(self, summary: Summary, measures: Measures = "frames") -> None:
        """Writes what follows from the journal, and the manifest last; events come before. It may be done again.

        ``measures`` says which table there is where nothing was measured.
        """
        # Here: only a run that is finished needs what writes tables, and loading it takes long.
        from nicbench.store import histograms, monitor_table, round_table, trial_table

        self.journal.close()
        trials, rounds = tuple(self.journal.trials().values()), tuple(self.journal.rounds().values())
        if rounds or (measures == "rounds" and not trials):
            write_atomically(self.path / "rounds.parquet", round_table.parquet(rounds))
        monitor_table.finish(self.path)
        if trials or (measures == "frames" and not rounds):  # a run has the one or the other, be it empty
            write_atomically(self.path / "trials.parquet", trial_table.parquet(trials))
            write_atomically(self.path / "latency.hlog", histograms.latency_log(trials).encode())
        # Sorted, so that a resumed run that found the same writes the same bytes.
        write_atomically(self.path / SUMMARY, (json_text(summary, sort_keys=True) + "\n").encode())
        manifest.write(self.path)

    def remove(self) -> None:
        """Takes the folder away; for a run that was refused before it measured anything."""
        self.journal.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def differences(self) -> tuple[str, ...]:
        """What was changed, removed or added since the run had finished, one sentence each."""
        return manifest.differences(self.path)

    def damage(self) -> tuple[str, ...]:
        """What is not as the run left it of the files that results are shown from, one sentence each."""
        return manifest.told([found for found in manifest.departures(self.path, SHOWN) if found.name in SHOWN])

    def _unfinish(self) -> None:
        """A journal that grows again is no longer what the manifest vouches for."""
        (self.path / manifest.NAME).unlink(missing_ok=True)

    def _model(self, name: str, kind: type[Kind]) -> Kind | None:
        content, path = self.read_json(name), self.path / name
        try:
            return None if content is None else kind.model_validate(content)
        except ValidationError as error:
            if kind is Summary and _is_newer(content):
                raise UsageError(
                    f"has the format {content['format']}, which a newer nicbench wrote",
                    place=str(path),
                    next_step="open it with that nicbench, or a newer one",
                ) from error
            raise damaged_error(ValueError(_first_problem(error)), path, _first_line(error, path)) from error


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _first_line(error: ValidationError, path: Path) -> int | None:
    return line_of(reading.text(path), error.errors(include_url=False)[0]["loc"])


def _is_newer(content: Any) -> bool:
    """Whether a summary says that it is of a format after ours; older ones all open."""
    said = content.get("format") if isinstance(content, dict) else None
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", said) if isinstance(said, str) else None
    ours = str(Summary.model_fields["format"].default).split(".")
    return found is not None and (int(found[1]), int(found[2])) > (int(ours[0]), int(ours[1]))


def slug(title: str) -> str:
    """A title as part of a folder's name: lower-case ASCII letters, digits and hyphens."""
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")
    return words[:_LONGEST_SLUG].strip("-") or "run"


def is_run_folder(path: Path) -> bool:
    """Whether ``path`` is the folder of a run, measured or imported, or what is left of one."""
    return path.is_dir() and any(_is_there(path / name) for name in (*_FIRST, JOURNAL, manifest.NAME))


def _refuse_ruin(path: Path) -> None:
    """HostError where the file that makes a folder that of a run is gone, or is none."""
    found = 0
    for name in _FIRST:
        with contextlib.suppress(FileNotFoundError):
            reading.opened(path / name).close()
            found += 1
    if not found:
        raise HostError(
            f"is damaged: {BENCH} is missing",
            place=str(path),
            next_step="put it back from a copy; without it nobody knows what was measured",
        )


def _is_there(path: Path) -> bool:
    """Also a link that leads nowhere. OSError where it cannot be known."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _made(parent: Path, title: str, name: str, text: str) -> Path:
    """A new folder with its first file in it, which makes it that of a run."""
    stem = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{slug(title)}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        path = _new_folder(parent.resolve(), stem)
    except OSError as error:
        raise storage_error(error, parent, "name another folder for runs, one you may write to") from error
    try:
        write_atomically(path / name, text.encode())
    except HostError as error:
        shutil.rmtree(path, ignore_errors=True)
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error.message
        raise HostError(
            f"a run folder cannot be made here: {why}",
            place=str(path.parent),
            next_step="free some space, or name another folder for runs (`--output`)",
        ) from error
    sync_folder(path.parent)
    return path


def _new_folder(parent: Path, stem: str) -> Path:
    """Two runs of one title in one second get different names."""
    number = 1
    while True:
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path
