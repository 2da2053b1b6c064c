"""Reads files of nmon (Linux) and topas_nmon (AIX): what a machine did, snapshot by snapshot.

A line has a section, then either the heading of its columns or the number of a snapshot (T0001) with a value for each;
``ZZZZ`` has the time of a snapshot in whole seconds by the machine's own clock, and ``AAA`` describes the recording.
Lines may be in any order: nmon itself advises to sort the file. The tests have a file recorded by nmon 16 on Linux; the
layouts of other versions and of AIX follow nmon's documentation, as no original file was available.

Shares of a CPU's time become times and rates become amounts over the interval, as our own monitor counts them; they are
no more precise than nmon's one decimal. KB are 1024 bytes and MB 1024 KB, as nmon divides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Final

from nicbench.core.errors import Position, Problem, WrongFileError, quote
from nicbench.core.frozen import frozen
from nicbench.core.number_reader import plain_number


@frozen
class Reading:
    """One value of a sample, named as in monitor.parquet. A ``gauge`` was read, a ``count`` is over the interval.

    ``of`` is the CPU, interface or drive, "" for the machine. ``value`` stays None where the recording does not give
    it.
    """

    metric: str
    of: str
    kind: str
    value: int | None


@frozen
class Sample:
    """The readings of one time. ``at_s`` is the end of the interval: seconds since 1970 by the machine's own clock.

    The clock's time zone is not known, so that only differences are meaningful.
    """

    at_s: float
    interval_s: float
    readings: tuple[Reading, ...]


@frozen
class Recording:
    """The recording of one machine. ``recorder`` is the program with its version; ``left_out`` lists sections not
    read.
    """

    host: str
    recorder: str
    interval_s: float
    samples: tuple[Sample, ...]
    left_out: tuple[str, ...] = ()


ENDING: Final = ".nmon"
_SNAPSHOT: Final = re.compile(r"T[0-9]{4,9}")
_CPU: Final = re.compile(r"CPU(\d{1,5})")
_MORE: Final = re.compile(r"([A-Z]+?)\d{0,3}")
"""With many drives or interfaces nmon writes several sections: DISKBUSY, DISKBUSY1, ..."""
_STATES: Final = {"User%": "user", "Sys%": "system", "Wait%": "iowait", "Idle%": "idle", "Steal%": "steal"}
_MEMORY: Final = {
    "memtotal": "memory_total_bytes",
    "memfree": "memory_free_bytes",
    "cached": "memory_cached_bytes",
    "swaptotal": "swap_total_bytes",
    "swapfree": "swap_free_bytes",
    "Real total(MB)": "memory_total_bytes",
    "Real free(MB)": "memory_free_bytes",
    "Virtual total(MB)": "swap_total_bytes",
    "Virtual free(MB)": "swap_free_bytes",
}
_WAYS: Final = {
    "NET": (re.compile(r"(.+)-(read|write)-KB/s"), {"read": "receive_bytes", "write": "transmit_bytes"}, 1024.0),
    "NETPACKET": (re.compile(r"(.+)-(read|write)s?/s"), {"read": "receive_packets", "write": "transmit_packets"}, 1.0),
}
_DISKS: Final = {"DISKREAD": "disk_read_bytes", "DISKWRITE": "disk_written_bytes", "DISKBUSY": "disk_busy_ns"}
_COMING_AND_GOING: Final = {**dict.fromkeys(_WAYS, "interfaces"), **dict.fromkeys(_DISKS, "drives")}
"""Sections whose columns may change while nmon records; it does not write their heading again."""
_KNOWN: Final = frozenset({"CPU_ALL", "MEM", *_WAYS, *_DISKS})
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_NOTHING: Final = frozenset({"", "nan", "-nan"})
_MOST_PERCENT: Final = 101.0
"""The highest sum of CPU shares accepted: they are rounded, and read one after the other."""


@frozen
class _Line:
    """A line; ``fields`` are those after the section and the number of the snapshot."""

    number: int
    section: str
    label: str
    fields: tuple[str, ...]

    @property
    def label_number(self) -> int:
        """The number of the snapshot."""
        return int(self.label[1:])

    def place(self, field_number: int) -> Position:
        before = (self.section, self.label, *self.fields[:field_number])
        return Position(self.number, sum(len(text) + 1 for text in before) + 1)


@dataclass
class _File:
    """The lines of a file, sorted by their meaning."""

    path: str
    about: dict[str, str] = field(default_factory=dict)
    heads: dict[str, _Line] = field(default_factory=dict)
    times: dict[str, _Line] = field(default_factory=dict)
    data: dict[str, dict[str, _Line]] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def wrong(self, position: Position, message: str, next_step: str | None = None) -> WrongFileError:
        return WrongFileError(self.path, [Problem(position, message, next_step)])


def read_nmon(text: str, path: str, host: str | None = None) -> Recording:
    """Reads a recording; ``host`` replaces the machine's name. WrongFileError names line and section."""
    file = _read(text, path)
    if not file.times:
        raise file.wrong(Position(1, 1), "has no snapshot: there is no line ZZZZ", "was nmon ended before its first?")
    ordered = sorted(
        ((_time_of(file, line), line) for line in file.times.values()), key=lambda one: one[1].label_number
    )
    for (earlier, _), (later, line) in pairwise(ordered):
        if later < earlier:
            why = "ZZZZ: the time goes back, so that nobody knows how long this snapshot took"
            raise file.wrong(line.place(0), why, "cut the file here, and import two recordings")
    interval_s = _interval(file, [at_s for at_s, _ in ordered])
    _leave_out_unknown_columns(file, [line.label for _, line in ordered])
    samples, before_s, before_label_s = [], ordered[0][0] - interval_s, ordered[0][0] - interval_s
    for stamped_s, line in ordered:
        passed_s = stamped_s - before_label_s
        # Times are whole seconds: a duration within a second of the interval is taken for the interval.
        took_s = interval_s if abs(passed_s - interval_s) <= 1.0 else float(passed_s)
        at_s = min(max(before_s + took_s, stamped_s), stamped_s + 0.999)
        samples.append(Sample(at_s, took_s, tuple(_readings(file, file.data.get(line.label, {}), took_s))))
        before_s, before_label_s = at_s, stamped_s
    if not any(sample.readings for sample in samples):
        raise file.wrong(Position(1, 1), "says nothing of CPUs, network, drives or memory", None)
    named = host or file.about.get("host", "").strip()
    if not named:
        raise file.wrong(Position(1, 1), "AAA: there is no line AAA,host", f"name it: --with-monitor {path}=HOST")
    recorder = " ".join(filter(None, (file.about.get("progname", "nmon"), file.about.get("version"))))
    return Recording(named, recorder, interval_s, tuple(samples), tuple(file.left_out))


def _read(text: str, path: str) -> _File:
    file = _File(path)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        section, _, rest = line.partition(",")
        label, _, values = rest.partition(",")
        if not line.strip() or section == "BBBP":  # BBBP holds the output of commands about the machine
            continue
        if number == 1 and section != "AAA" and not any(each.startswith("AAA,") for each in lines):
            raise file.wrong(Position(1, 1), "is no file of nmon: no line begins with AAA", "record it by `nmon -f`")
        parsed = _Line(number, section, label, tuple(values.split(",")) if values else ())
        if section == "AAA":
            file.about.setdefault(label, parsed.fields[0] if parsed.fields else "")
        elif section == "ZZZZ":
            if not _SNAPSHOT.fullmatch(label):
                why = f"ZZZZ: {quote(label)} is no number of a snapshot, as T0001 is"
                raise file.wrong(Position(number, len(section) + 2), why)
            _add_once(file, file.times, label, parsed)
        elif not _is_read(section):
            file.left_out[section] = None
        elif _SNAPSHOT.fullmatch(label):
            is_cut = number == len(lines) and not text.endswith("\n")
            if not is_cut:  # the last line of a killed recording may be incomplete
                _add_once(file, file.data.setdefault(label, {}), section, parsed)
        else:
            _add_heading(file, parsed)
    for label, sections in file.data.items():
        if label not in file.times:
            first = next(iter(sections.values()))
            why = f"{first.section}: the snapshot {label} has no time: there is no line ZZZZ,{label}"
            raise file.wrong(Position(first.number, 1), why, "is the file whole?")
    return file


def _add_once(file: _File, known: dict[str, _Line], name: str, line: _Line) -> None:
    if name in known:
        why = f"{line.section}: {line.label} stands twice, first on line {known[name].number}"
        raise file.wrong(Position(line.number, 1), why, "two recordings in one file? import them as two")
    known[name] = line


def _add_heading(file: _File, line: _Line) -> None:
    known = file.heads.setdefault(line.section, line)
    if [name.strip() for name in known.fields] != [name.strip() for name in line.fields]:
        why = f"{line.section}: its columns are named otherwise on line {known.number}"
        raise file.wrong(Position(line.number, 1), why, "cut the file between them, and import two recordings")


def _leave_out_unknown_columns(file: _File, labels: Sequence[str]) -> None:
    """Removes what interfaces or drives did from the first snapshot on that has not one value for each column.

    An interface or a drive came or went then, and the columns of every later snapshot are unknown, however many.
    """
    for what in dict.fromkeys(_COMING_AND_GOING.values()):
        sections = [name for name in file.heads if _COMING_AND_GOING.get(_section_kind(name)) == what]
        changed = next(
            (
                number
                for number, label in enumerate(labels)
                for section in sections
                if (line := file.data.get(label, {}).get(section)) is not None
                and len(_cells(line)) != len(_names(file.heads[section]))
            ),
            None,
        )
        if changed is None:
            continue
        for label in labels[changed:]:
            for section in sections:
                file.data.get(label, {}).pop(section, None)
        file.left_out[f"{' and '.join(sections)} from {labels[changed]} on, as {what} came or went"] = None


def _names(heads: _Line) -> list[str]:
    names = [name.strip() for name in heads.fields]
    while names and not names[-1]:
        names.pop()
    return names


def _cells(line: _Line) -> list[str]:
    cells = list(line.fields)
    while cells and not cells[-1].strip():
        cells.pop()
    return cells


def _is_read(section: str) -> bool:
    return bool(_CPU.fullmatch(section)) or _section_kind(section) in _KNOWN


def _section_kind(section: str) -> str:
    """Returns the section without its number: DISKBUSY for DISKBUSY1."""
    found = _MORE.fullmatch(section)
    return found[1] if found else section


def _time_of(file: _File, line: _Line) -> int:
    """Returns the snapshot's time in seconds since 1970, by the machine's own clock and time zone."""
    clock, date = (*line.fields, "", "")[:2]
    day, month, year = (*date.strip().upper().split("-"), "", "")[:3]
    try:
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        written = datetime(int(year), _MONTHS.index(month) + 1, int(day), hours, minutes, seconds)
    except (ValueError, OverflowError) as error:
        why = f"ZZZZ: {quote(','.join(line.fields))} is no time"
        raise file.wrong(line.place(0), why, "nmon writes ZZZZ,T0001,23:59:59,31-DEC-2026") from error
    return int((written - datetime(1970, 1, 1)).total_seconds())


def _interval(file: _File, times_s: Sequence[int]) -> float:
    """Returns the interval as configured in nmon; else the median time between snapshots."""
    with suppress(ValueError):
        written_s = plain_number(file.about.get("interval", "").strip())
        if 0.0 < written_s < 1e6:
            return written_s
    passed = [later - earlier for earlier, later in pairwise(times_s)]
    if not passed or median(passed) <= 0:
        raise file.wrong(Position(1, 1), "AAA: there is no line AAA,interval, and too few snapshots to tell", None)
    return float(median(passed))


def _readings(file: _File, sections: dict[str, _Line], took_s: float) -> Iterator[Reading]:
    """Yields the readings of one snapshot; the sum over CPUs only where single CPUs are missing."""
    one_by_one = any(_CPU.fullmatch(section) for section in file.heads)
    for section, line in sections.items():
        cpu, kind = _CPU.fullmatch(section), _section_kind(section)
        if cpu is not None:
            yield from _cpu(file, line, f"cpu{int(cpu[1]) - 1}", took_s)
        elif section == "CPU_ALL":
            if not one_by_one:
                yield from _cpu(file, line, "all", took_s)
        elif kind in _WAYS:
            yield from _ways(file, line, kind, took_s)
        elif kind in _DISKS:
            factor = took_s * (1e9 / 100.0 if kind == "DISKBUSY" else 1024.0)
            for head, value in _values(file, line):
                yield Reading(_DISKS[kind], head, "count", _scale_to_int(value, factor))
        else:
            for head, value in _values(file, line):
                if head in _MEMORY:
                    yield Reading(_MEMORY[head], "", "gauge", _scale_to_int(value, 1024.0 * 1024.0))


def _cpu(file: _File, line: _Line, of: str, took_s: float) -> Iterator[Reading]:
    shares = [(head, value) for head, value in _values(file, line) if head in _STATES]
    whole = sum(value or 0.0 for _, value in shares)
    if whole > _MOST_PERCENT:
        why = f"{line.section}: {whole:.1f} % of a CPU's time are more than all of it"
        raise file.wrong(line.place(0), why, "nobody can tell which of them is wrong")
    for head, value in shares:
        yield Reading(f"cpu_{_STATES[head]}_ns", of, "count", _scale_to_int(value, took_s * 1e9 / 100.0))


def _ways(file: _File, line: _Line, kind: str, took_s: float) -> Iterator[Reading]:
    form, metrics, factor = _WAYS[kind]
    for head, value in _values(file, line):
        found = form.fullmatch(head)
        if found is not None:
            yield Reading(metrics[found[2]], found[1], "count", _scale_to_int(value, factor * took_s))


def _values(file: _File, line: _Line) -> Iterator[tuple[str, float | None]]:
    """Yields each column's name and value; None where nmon has no value (empty, -1, -0.0, nan)."""
    heads = file.heads.get(line.section)
    if heads is None:
        why = f"{line.section}: there is no line that names its columns"
        raise file.wrong(Position(line.number, 1), why, "is the beginning of the file missing?")
    names, cells = _names(heads), _cells(line)
    if len(cells) > len(names):
        why = f"{line.section}: {len(cells)} values, and the heading on line {heads.number} names {len(names)}"
        raise file.wrong(line.place(len(names)), why, "is a line of another recording among them?")
    missing = [name for name in names[len(cells) :] if name]
    if missing and line.section != "CPU_ALL":  # CPU_ALL may lack its last columns
        raise file.wrong(line.place(len(cells)), f"{line.section}: the value of {quote(missing[0])} is missing", None)
    for number, (name, text) in enumerate(zip(names, cells, strict=False)):
        written = text.strip()
        if written.lower() in _NOTHING:
            yield name, None
            continue
        try:
            value = plain_number(written)
        except ValueError as error:
            why = f"{line.section}: {quote(text)} is no number of {quote(name)}"
            raise file.wrong(line.place(number), why) from error
        if math.isinf(value):
            raise file.wrong(line.place(number), f"{line.section}: {quote(text)} cannot be a value of {quote(name)}")
        yield name, None if math.copysign(1.0, value) < 0.0 else value


def _scale_to_int(value: float | None, factor: float) -> int | None:
    return None if value is None else round(value * factor)
