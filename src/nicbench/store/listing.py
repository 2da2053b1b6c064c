"""Lists the runs under a folder, with a headline of each, and finds the run that a command line names.

For a list a journal is skimmed: title, start, methods and counts, without checking every line of it.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import from_json

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.frozen import frozen
from nicbench.store import files, manifest
from nicbench.store.files import BENCH, JOURNAL, SUMMARY
from nicbench.store.folder import SHOWN, RunFolder, is_run_folder, refuse_damaged
from nicbench.store.marks import tags_of

if TYPE_CHECKING:
    from nicbench.core.result import Summary


# A run's headline: what a list shows of a run and what searches look at, and its line in the index.

INVENTORY: Final = "inventory.json"
LONGEST_TEXT: Final = 300
MOST_NAMES: Final = 64
_FIELD: Final = "\x1f"
_NAME: Final = "\x1e"
"""Separators of the fields of a line, and of the names in a field: characters that no clean text has."""
VERDICTS: Final = frozenset({"", "valid", "disturbed", "incomplete", "imported"})
"""Values of a headline's verdict; empty where it has none."""
_FIELDS: Final = 17
_LONGEST_LINE: Final = 200_000
"""Characters: more than all names and texts of a headline can have."""
_NAME_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z")


# What an inventory says by which runs are searched.


@frozen
class Machines:
    """Cards under test, kernels, drivers and processors of all machines of a run, each name once."""

    cards: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()


def machines_of(folder: Path, inventory: bytes | None = None) -> Machines:
    """Reads what ``machines`` extracts of a run folder; empty where it has no readable inventory.

    ``inventory`` is the content of that file where it is known.
    """
    try:
        return machines(from_json(inventory or files.read_bytes(folder / INVENTORY), allow_inf_nan=False))
    except (OSError, ValueError, RecursionError, NicbenchError):
        return Machines()


def machines(inventory: Any) -> Machines:
    """Extracts cards, kernels, drivers and processors from an inventory.

    Cards are those of the interfaces under test; where no interface is known (DPDK took it), all of the machine.
    """
    each = [_mapping(facts) for facts in _mapping(inventory).values()]
    cards = [card for facts in each for card in _cards(facts)]
    return Machines(
        cards=_once(" ".join(_words(card, "vendor", "model", "id")) for card in cards),
        kernels=_once(release for facts in each for release in _words(_mapping(facts.get("kernel")), "release")),
        drivers=_once(name for facts in each for name in _drivers(facts)),
        processors=_once(model for facts in each for model in _words(_mapping(facts.get("cpu")), "model")),
    )


def _cards(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    adapters = _mapping(facts.get("pci_adapters"))
    drivers = _mapping(facts.get("drivers"))
    buses = [str(_mapping(drivers.get(name)).get("bus")) for name in _mapping(facts.get("interfaces"))]
    known = [bus for bus in buses if bus in adapters]
    return [_mapping(adapters[bus]) for bus in known or adapters]


def _drivers(facts: Mapping[str, Any]) -> Iterator[str]:
    """Lists the drivers of the interfaces under test; for a virtual one its kind (veth) stands in for the driver."""
    for name, link in _mapping(facts.get("interfaces")).items():
        named = _words(_mapping(_mapping(facts.get("drivers")).get(name)), "name")
        yield from named or _words(_mapping(link), "kind")
    for card in _cards(facts):
        yield from _words(card, "driver")


def _words(found: Mapping[str, Any], *names: str) -> list[str]:
    return [value for name in names if isinstance(value := found.get(name), str) and value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


# The headline.


def clean(text: str) -> str:
    """Puts a text on one line, without control characters, and cuts it to ``LONGEST_TEXT``."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in text[: 2 * LONGEST_TEXT])
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def time_of_name(run_id: str) -> str:
    """Returns the time in the name of a run's folder, in UTC and sortable; empty if the name has none."""
    found = _NAME_TIME.match(run_id)
    return f"{found[1]}{found[2]}:{found[3]}:{found[4]}+00:00" if found else ""


class RunHeadline(NamedTuple):
    """What a list shows of a run. ``started`` is wall time, a label; ``trouble`` says why a run cannot be read.

    All text is clean, no text is empty, and None means unknown.
    """

    run_id: str
    folder: str
    """Path of the run folder."""
    title: str | None = None
    started: str | None = None
    verdict: str | None = None
    """Value of ``ResultVerdict``."""
    finished: bool = False
    trials: int = 0
    results: int = 0
    has_report: bool = False
    trouble: str | None = None
    tags: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    """Vendor, model and PCI number of the cards under test, or the device of an import."""
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    nicbench_version: str | None = None
    format: str | None = None
    """Format version of its summary."""
    headline: str | None = None

    @property
    def path(self) -> Path:
        """The run's folder as a path."""
        return Path(self.folder)

    @property
    def name(self) -> str:
        """The name of the run's folder, which addresses have; ``run_id`` is the same as clean text."""
        return self.folder.rpartition("/")[2]

    @property
    def at(self) -> str:
        """When it started, in UTC and sortable; from the folder's name where the journal does not say."""
        if self.started:
            return self.started
        return time_of_name(self.run_id)

    def plain(self) -> dict[str, Any]:
        """Returns the headline as a dictionary for JSON."""
        return {"path" if name == "folder" else name: value for name, value in self._asdict().items()}


def line_of(run: RunHeadline) -> str:
    """Encodes a headline as its line in the index, without the run's name and folder."""
    return _FIELD.join(
        _NAME.join(each) if isinstance(each, tuple) else str(int(each)) if isinstance(each, int) else each or ""
        for each in run[2:]
    )


def of_line(name: str, folder: str, line: str) -> RunHeadline | None:
    """Decodes the headline of the run ``name`` from its line in the index.

    None where the line is invalid: an index is trusted no more than a run folder is.
    """
    fields = line.split(_FIELD)
    if len(fields) != _FIELDS or len(line) > _LONGEST_LINE:
        return None
    if not line.replace(_FIELD, "").replace(_NAME, "").isprintable():
        return None
    title, started, verdict, finished, trials, results, has_report, trouble, *names, version, form, said = fields
    if verdict not in VERDICTS or not (trials.isdecimal() and results.isdecimal() and len(trials + results) < 24):
        return None
    tags, cards, kernels, drivers, methods, configurations = (
        tuple(each.split(_NAME)) if each else () for each in names
    )
    return RunHeadline(
        clean(name),
        folder,
        title or None,
        started or None,
        verdict or None,
        finished == "1",
        int(trials),
        int(results),
        has_report == "1",
        trouble or None,
        tags,
        cards,
        kernels,
        drivers,
        methods,
        configurations,
        version or None,
        form or None,
        said or None,
    )


LONGEST_LINE: Final = 16 * 1024 * 1024
"""Limit in bytes; a longer line is skipped."""
_NOTHING: Final = RunHeadline("", "")
_PREFIX: Final = b'{"event":"'
_SKIMMED: Final = frozenset({b"run_started", b"result_ready", b"test_started"})
"""Events whose content a list needs; of the others it needs only the number."""


def skim(journal: Path, content: bytes | None = None) -> RunHeadline:
    """Makes the headline of a run as its journal has it, whose ``content`` may be known: texts as they were written.

    Torn or damaged lines are skipped; opening the run reports them.
    """
    try:
        with files.open_file(journal) if content is None else io.BytesIO(content) as stream:
            return _skim(iter(partial(stream.readline, LONGEST_LINE), b""))
    except FileNotFoundError:
        return _NOTHING
    except NicbenchError as error:
        return _NOTHING._replace(trouble=f"{journal.name} {error.message}")
    except OSError as error:
        return _NOTHING._replace(trouble=str(error))


def _skim(lines: Iterable[bytes]) -> RunHeadline:
    first: dict[str, Any] = {}
    trials, results = 0, set[str]()
    methods, configurations = dict[str, None](), dict[str, None]()
    for line in lines:
        kind, event = _event(line)
        if kind in ("trial_finished", "round_finished"):
            trials += 1
        elif kind == "run_started" and not first:
            first = event
        elif kind == "test_started":
            methods[str(event.get("method"))] = None
        elif kind == "result_ready" and isinstance(result := event.get("result"), dict):
            results.add(json.dumps(result.get("id")))
            configurations[str(result.get("configuration") or "default")] = None
    return _NOTHING._replace(
        title=_text_of(first.get("title")),
        started=_text_of(first.get("wall_time")),
        nicbench_version=_text_of(first.get("nicbench_version")),
        trials=trials,
        results=len(results),
        methods=tuple(methods),
        configurations=tuple(configurations),
    )


def _event(line: bytes) -> tuple[str, dict[str, Any]]:
    """Returns an event's kind, and its content where a list needs it.

    Lines that nicbench wrote begin with the kind; others are parsed.
    """
    if line.startswith(_PREFIX):
        kind = line[len(_PREFIX) : len(_PREFIX) + 32].partition(b'"')[0]
        if kind not in _SKIMMED:
            return kind.decode(errors="replace") if line.endswith(b"\n") else "", {}
    try:
        event = from_json(line, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return "", {}
    return (str(event.get("event")), event) if isinstance(event, dict) else ("", {})


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_READ: Final = SHOWN - {"monitor.parquet", "monitor.ndjson"}
"""Files whose checksums are compared; others may be large, and need only be there."""
_MOST_CHECKED_BYTES: Final = 16 * 2**20
"""Larger files are compared when a run is opened, not for a list."""
LATEST = "latest"

Tell = Callable[["Summary"], str | None]
"""Returns one line on the results of a run whose summary has no headline."""


def list_runs(parent: Path, tell: Tell = lambda _: None) -> tuple[RunHeadline, ...]:
    """Lists the run folders directly under ``parent``, oldest first (their names begin with the time)."""
    if not parent.is_dir():
        return ()
    return tuple(headline(path, tell) for path in sorted(parent.iterdir()) if is_run_folder(path))


def latest_run(parent: Path) -> Path | None:
    """Finds the newest run folder without reading any of them."""
    if not parent.is_dir():
        return None
    return next((path for path in sorted(parent.iterdir(), reverse=True) if is_run_folder(path)), None)


def headline(path: Path, tell: Tell = lambda _: None) -> RunHeadline:
    """Makes the headline of one run folder; for a damaged one it says what is wrong. ``tell`` describes the results."""
    from nicbench.core.result import ResultVerdict  # imported here: a list of known runs reads none

    try:
        examined = manifest.examine(path, _READ, _MOST_CHECKED_BYTES)
        damage = manifest.describe([each for each in examined.departures if each.name in SHOWN])
        if not damage and BENCH not in examined.contents:
            RunFolder.open(path)
    except UsageError as error:  # written by a newer nicbench
        return unreadable(path, f"{Path(error.place or path).name} {error.message}")
    except NicbenchError as error:
        damage = (f"{Path(error.place or path).name} {error.message}",)
    if damage:
        return unreadable(path, f"damaged: {'; '.join(damage)}")
    contents, finished = examined.contents, manifest.NAME in examined.files
    journal = skim(path / JOURNAL, contents.get(JOURNAL))
    trouble: str | None
    title, results, trouble = journal.title, journal.results, journal.trouble
    methods, configurations = journal.methods, journal.configurations
    verdict, said, version = ResultVerdict.INCOMPLETE, None, None
    device: tuple[str, ...] = ()
    try:
        summary = RunFolder(path).summary(contents.get(SUMMARY))
        if summary is not None:
            version, said = summary.format, summary.headline or tell(summary)
            methods = tuple(result.method for result in summary.results) or methods
            configurations = summary.configurations or tuple(result.configuration for result in summary.results)
            device = (summary.imported.device or "",) if summary.imported else ()
        if summary is not None and finished:
            title, verdict, results = summary.title, summary.verdict, len(summary.results)
    except NicbenchError as error:
        trouble = error.message
    machines = machines_of(path, contents.get(INVENTORY))
    return RunHeadline(
        run_id=clean(path.name),
        folder=str(path),
        title=_text(title),
        started=_in_utc(journal.started),
        verdict=verdict.value if trouble is None else None,
        finished=finished,
        trials=journal.trials,
        results=results,
        has_report="report.html" in examined.files,
        trouble=_text(trouble),
        tags=tags_of(path),
        cards=_names((*device, *machines.cards)),
        kernels=_names(machines.kernels),
        drivers=_names(machines.drivers),
        methods=_names(methods),
        configurations=_names(configurations),
        nicbench_version=_text(journal.nicbench_version),
        format=_text(version),
        headline=_text(said),
    )


def unreadable(path: Path, trouble: str) -> RunHeadline:
    """Makes the headline of a run that cannot be read: its name, its tags (which no manifest covers) and the reason."""
    return RunHeadline(run_id=clean(path.name), folder=str(path), trouble=clean(trouble), tags=tags_of(path))


def _text(text: str | None) -> str | None:
    return clean(text) if text else None


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Cleans names and removes duplicates, keeping the order and at most ``MOST_NAMES``."""
    return tuple(islice(dict.fromkeys(clean(name) for name in names if name), MOST_NAMES))


def _in_utc(wall_time: str | None) -> str | None:
    """Converts a wall time to UTC; None if it is not a valid time."""
    try:
        time = datetime.fromisoformat(wall_time or "")
    except ValueError:
        return None
    try:
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError:
        return None


# A run is named by its folder, by its id in the folder that holds runs, or as ``latest``.


def open_run(reference: str, output: Path, *, damaged: bool = False) -> RunFolder:
    """Opens the run folder that ``reference`` names. UsageError if it does not exist, HostError if it is damaged.

    With ``damaged`` a damaged folder is opened too; its reader then says what is wrong with it.
    """
    folder = RunFolder.open(path_of(reference, output))
    if not damaged:
        refuse_damaged(folder)
    return folder


def path_of(reference: str, output: Path) -> Path:
    """Returns the path of the named run. UsageError if ``latest`` is asked for and the folder has no runs."""
    if reference == LATEST:
        run = latest_run(output)
        if run is None:
            raise UsageError("there are no runs here", place=str(output), next_step="nicbench run BENCH.yaml makes one")
        return run
    path = Path(reference)
    by_id = output / reference
    # A folder of that name in the current folder has precedence over an id.
    return by_id if not path.exists() and by_id.exists() else path
