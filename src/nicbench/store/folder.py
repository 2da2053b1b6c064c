"""The run folder, with everything about one run. A folder that is not as its run left it is refused (quarantine)."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import re
import secrets
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from nicbench.core.base import why_of
from nicbench.core.errors import HostError, UsageError
from nicbench.core.redaction import Redactor
from nicbench.store import files, manifest
from nicbench.store.files import (
    BENCH,
    ERROR,
    IMPORT,
    JOURNAL,
    PLAN,
    SUMMARY,
    damaged_error,
    hands,
    json_text,
    line_of,
    storage_error,
    sync_folder,
    write_atomically,
)

if TYPE_CHECKING:
    from nicbench.core.plan import Plan
    from nicbench.core.result import Summary
    from nicbench.methods.base import Measures
    from nicbench.store.journal import Journal


RAW = "raw"
FRAMES = "frames"
"""Folder with every frame's times, a file for each round (``frame_samples``)."""
SHOWN = frozenset(
    {BENCH, IMPORT, JOURNAL, SUMMARY, PLAN, "inventory.json", "tuning.json", "monitor.parquet", "monitor.ndjson"}
)
"""Files that are read to show or compare a run. The others are for other programs."""
FROM_A_COPY: Final = "restore the files from a copy of the folder"
_FIRST = (BENCH, IMPORT)
"""A run folder holds one of these from its beginning."""
_LONGEST_SLUG = 48
_ID_LETTERS: Final = "0123456789abcdfghjkmnpqrstvwxyz"
"""Of Crockford's base 32, without the e of numbers (7e0): no letter is taken for a digit, whatever its case."""
_ID_LENGTH: Final = 10

Kind = TypeVar("Kind", bound=BaseModel)


class RunFolder:
    """A run folder on disk, made by ``create`` or opened by ``open``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.redactor: Redactor | None = None

    @functools.cached_property
    def journal(self) -> Journal:
        """The journal of the run, imported on first use because reading the summary does not need it."""
        from nicbench.store.journal import Journal

        return Journal(self.path / JOURNAL, before_reopening=self._unfinish)

    @classmethod
    def create(cls, parent: Path, bench_text: str, title: str) -> RunFolder:
        """Makes ``parent/2026-01-31T120000Z-slug-of-title-RANDOM`` with the bench file in it (``new_run_id``)."""
        return cls(_make_folder(parent, title, BENCH, bench_text))

    @classmethod
    def create_imported(cls, parent: Path, content: dict[str, Any], title: str) -> RunFolder:
        """Makes a folder for results that another program measured; ``content`` says how they were read."""
        folder = cls(_make_folder(parent, title, IMPORT, json_text(content) + "\n"))
        try:
            hands().make_folder(folder.raw)
        except OSError as error:
            raise storage_error(error, folder.raw) from error
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Opens the folder of an existing run. UsageError if it is not a run folder."""
        look = "`nicbench list` shows the runs"
        if not path.exists():
            raise UsageError("there is no such folder", place=str(path), next_step=look)
        if not path.is_dir():
            if path.suffix in (".yaml", ".yml"):
                look = f"`nicbench run {path}` makes a run of a bench file; {look}"
            raise UsageError("is a file, not the folder of a run", place=str(path), next_step=look)
        try:
            is_run = is_run_folder(path)
        except OSError as error:
            raise storage_error(error, path) from error
        if not is_run:
            runs = sorted((each.name for each in path.iterdir() if is_run_folder(each)), reverse=True)
            if runs:
                look = f"name one of the {len(runs)} runs in it, such as {path / runs[0]}"
            raise UsageError(f"is not the folder of a run: it holds no {BENCH}", place=str(path), next_step=look)
        _refuse_ruin(path)
        return cls(path.resolve())

    def redact_with(self, redactor: Redactor) -> None:
        """Redacts what is written from now on: plan, inventory, tuning, events.

        Trials, rounds and results are counts and times and are written as they are; so is the bench file.
        """
        self.redactor = redactor
        self.journal.redact = redactor

    @property
    def is_imported(self) -> bool:
        """Whether its results were measured by another program."""
        return (self.path / IMPORT).is_file()

    @property
    def raw(self) -> Path:
        """The folder with the output of tools and with imported files."""
        return self.path / RAW

    @property
    def bench_text(self) -> str:
        """The bench file as given; for an import, the description of how it was read."""
        path = self.path / (IMPORT if self.is_imported else BENCH)
        try:
            return files.read_text(path)
        except FileNotFoundError as error:
            raise storage_error(error, path) from error

    @property
    def finished(self) -> bool:
        """Whether ``finish`` has completed and nothing was appended since."""
        return (self.path / manifest.NAME).is_file()

    @property
    def holds_outputs(self) -> bool:
        """Whether it holds output of a tool, or the traceback of a crash."""
        outputs = (self.raw, self.path / FRAMES)
        return (self.path / ERROR).is_file() or any(each.is_file() for one in outputs for each in one.rglob("*"))

    def write_json(self, name: str, content: BaseModel | dict[str, Any] | list[Any]) -> None:
        """Writes a JSON file of the folder, all or nothing; keys keep their order, which a report shows."""
        if self.redactor is not None:
            content = self.redactor(json.loads(json_text(content)))
        write_atomically(self.path / name, (json_text(content) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """Reads a JSON file of the folder; None where it is missing (the run ended before it was written)."""
        path = self.path / name
        try:
            return files.parse_json(path)
        except FileNotFoundError:
            return None

    def plan(self) -> Plan | None:
        """Reads the plan; None where the run ended before it was written."""
        from nicbench.core.plan import Plan  # imported here: a list of runs that are known reads none

        return self._model(PLAN, Plan)

    def summary(self, known: bytes | None = None) -> Summary | None:
        """Reads the summary; None where the run is not finished. ``known`` is what the file holds, if that was read."""
        from nicbench.core.result import Summary  # imported here, as in plan

        return self._model(SUMMARY, Summary, known)

    def finish(self, summary: Summary, measures: Measures = "frames") -> None:
        """Writes the files derived from the journal, and the manifest last. It may be repeated.

        ``measures`` selects the table that is written where nothing was measured.
        """
        # Imported here: only finishing a run needs what writes tables, and loading it is slow.
        from nicbench.store import monitor_samples, samples, tables

        self.journal.close()
        trials, rounds = tuple(self.journal.trials().values()), tuple(self.journal.rounds().values())
        if rounds or (measures == "rounds" and not trials):
            write_atomically(self.path / "rounds.parquet", tables.rounds_parquet(rounds))
        monitor_samples.finish(self.path)
        if trials or (measures == "frames" and not rounds):  # a run has the one or the other, be it empty
            write_atomically(self.path / "trials.parquet", tables.trials_parquet(trials))
            write_atomically(self.path / "latency.hlog", samples.latency_log(trials).encode())
        # Sorted, so that a resumed run that found the same writes the same bytes.
        write_atomically(self.path / SUMMARY, (json_text(summary, sort_keys=True) + "\n").encode())
        manifest.write(self.path)

    def remove(self) -> None:
        """Removes the folder of a run that was refused before it measured anything."""
        self.journal.close()
        hands().remove_folder(self.path)

    def differences(self) -> tuple[str, ...]:
        """Describes what was changed, removed or added since the run had finished, one sentence each."""
        return manifest.differences(self.path)

    def damage(self) -> tuple[str, ...]:
        """Describes damage to the files that results are shown from, one sentence each."""
        return manifest.describe([found for found in manifest.departures(self.path, SHOWN) if found.name in SHOWN])

    def _unfinish(self) -> None:
        """Removes the manifest, which no longer covers a journal that grows again."""
        hands().remove(self.path / manifest.NAME)

    def _model(self, name: str, kind: type[Kind], known: bytes | None = None) -> Kind | None:
        path = self.path / name
        content = self.read_json(name) if known is None else files.parse_json_of(known, path)
        try:
            return None if content is None else kind.model_validate(content)
        except ValidationError as error:
            if name == SUMMARY and _is_newer(content):
                raise UsageError(
                    f"has the format {content['format']}, which a newer nicbench wrote",
                    place=str(path),
                    next_step="open it with that nicbench, or a newer one",
                ) from error
            raise damaged_error(ValueError(first_problem(error)), path, _first_line(error, path)) from error


def first_problem(error: ValidationError) -> str:
    """Describes the first problem of a file that is not as its model says: where it is, and why."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {why_of(first)}" if where else why_of(first)


def _first_line(error: ValidationError, path: Path) -> int | None:
    return line_of(files.read_text(path), error.errors(include_url=False)[0]["loc"])


def _is_newer(content: Any) -> bool:
    """Whether a summary has a newer format than this nicbench knows; all older ones can be read."""
    said = content.get("format") if isinstance(content, dict) else None
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", said) if isinstance(said, str) else None
    from nicbench.core.result import Summary  # imported here, as in RunFolder.plan

    ours = str(Summary.model_fields["format"].default).split(".")
    return found is not None and (int(found[1]), int(found[2])) > (int(ours[0]), int(ours[1]))


def slug(title: str) -> str:
    """Converts a title to a part of a folder's name: lower-case ASCII letters, digits and hyphens."""
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")
    return words[:_LONGEST_SLUG].strip("-") or "run"


def new_run_id(title: str) -> str:
    """Makes the id of a new run, which is the name of its folder: time in UTC, title, ten random characters.

    The ids of machines that know nothing of each other differ, as runs of many of them are gathered in one place: of
    10,000 that were made in one second with one title, two are equal with a probability of 6e-8 (n**2 / 2 / 31**10).
    """
    random = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
    return f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{slug(title)}-{random}"


def is_run_folder(path: Path) -> bool:
    """Whether a path is the folder of a run, measured or imported, or the remains of one."""
    return path.is_dir() and any(_is_there(path / name) for name in (*_FIRST, JOURNAL, manifest.NAME))


def _refuse_ruin(path: Path) -> None:
    """Raises HostError unless the run folder has a bench file or an import file that is a regular file."""
    found = 0
    for name in _FIRST:
        with contextlib.suppress(FileNotFoundError):
            files.open_file(path / name).close()
            found += 1
    if not found:
        raise HostError(
            f"is damaged: {BENCH} is missing",
            place=str(path),
            next_step="put it back from a copy; without it nobody knows what was measured",
        )


def _is_there(path: Path) -> bool:
    """Whether a path exists, even as a dangling link. OSError where that cannot be known."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


_WRONG_FOLDER: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG}
)
"""Errors that only another folder avoids: the run does not exist yet, so it cannot be resumed."""


def _make_folder(parent: Path, title: str, name: str, text: str) -> Path:
    """Makes a folder with its first file, which marks it as that of a run."""
    try:
        hands().make_folder(parent)
        path = parent.resolve() / new_run_id(title)
        hands().make_folder(path, exist_ok=False)  # never a folder that is there: two runs in one would be lost
    except OSError as error:
        step = "name another folder for runs, one you may write to, by `--runs DIR`"
        if error.errno in _WRONG_FOLDER:
            message = f"a run folder cannot be made here: {error.strerror}"
            raise UsageError(message, place=str(parent), next_step=step) from error
        raise storage_error(error, parent, step) from error
    try:
        write_atomically(path / name, text.encode())
    except HostError as error:
        hands().remove_folder(path)
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error.message
        raise HostError(
            f"a run folder cannot be made here: {why}",
            place=str(path.parent),
            next_step="free some space, or name another folder for runs (`--runs`)",
        ) from error
    sync_folder(path.parent)
    return path


# Quarantine: a damaged run folder stays where it is, and is not read as if it were good.


def refuse_damaged(folder: RunFolder, next_step: str = FROM_A_COPY) -> None:
    """Raises HostError where a file that would be shown is not as the run left it."""
    _refuse(folder, folder.damage(), next_step)


def refuse_damaged_files(folder: RunFolder, *names: str) -> None:
    """Raises HostError where one of these files (paths in the run folder) is not as the run left it."""
    found = [each for each in manifest.departures(folder.path, names) if each.name in names]
    _refuse(folder, manifest.describe(found), FROM_A_COPY)


def _refuse(folder: RunFolder, damage: tuple[str, ...], next_step: str) -> None:
    if damage:
        raise HostError(
            f"the run folder is damaged and in quarantine: {'; '.join(damage)}",
            place=str(folder.path),
            next_step=next_step,
        )
