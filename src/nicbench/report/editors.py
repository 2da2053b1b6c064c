"""A study of film frames: groups results by direction, configuration and number of instances.

It also says where the frames were: the directory of each instance and the file system that its client had there. A
share that is not mounted is the client's own disk: then nothing crossed the network, and no server was involved.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from nicbench.compare.claims import PointComparison
from nicbench.core.lists import grouped, without_none
from nicbench.core.registry import find
from nicbench.core.result import Result, name_of_test
from nicbench.core.turn import DEFAULT
from nicbench.core.units import and_list, format_fixed
from nicbench.methods.base import Method, tables_of
from nicbench.report.numbers import THIN_SPACE, UNKNOWN
from nicbench.report.statistics import StatisticsView
from nicbench.report.wording import capitalise
from nicbench.stats.frames import (
    INSTANCES,
    RATE,
    RUNS,
    SUM,
    SUMMARY,
    FiguresOverRuns,
    FilmRun,
    HeldInstances,
    SustainedInstances,
    Target,
    TriedPoint,
    find_sustained,
    group_by_point,
    trusted_number,
)

_ORDER: Final = ("read", "write", "both")
_DOING: Final = {"read": "Reading", "write": "Writing", "both": "Reading and writing"}


class OneWay(NamedTuple):
    """One direction of a study: everything that was tried, by configuration and number of instances.

    Without a ``direction``, the source does not state it; ``configurations`` are in the order of the bench file.
    """

    direction: str | None
    configurations: tuple[str, ...]
    counts: tuple[int, ...]
    at: Mapping[tuple[str, int], TriedPoint]

    @property
    def doing(self) -> str | None:
        """The direction as the first word of a sentence: "Reading"; None where the direction is not known."""
        return None if self.direction is None else _DOING.get(self.direction, self.direction.capitalize())

    @property
    def runs(self) -> tuple[int, ...]:
        """The numbers of all runs."""
        return tuple(sorted({ran.run for found in self.at.values() for ran in found.runs}))

    @property
    def has_several_runs(self) -> bool:
        """Whether any number of instances was tried more than once."""
        return any(len(found.runs) > 1 for found in self.at.values())

    @property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """Each configuration and number of instances that was tried."""
        return tuple((name, count) for name in self.configurations for count in self.counts if (name, count) in self.at)

    @property
    def ran(self) -> Iterator[FilmRun]:
        """Every run of every number of instances."""
        return (ran for found in self.at.values() for ran in found.runs)

    def figures_over_runs(self, configuration: str) -> dict[int, FiguresOverRuns]:
        """Returns the figures of a configuration over its runs, by number of instances in rising order."""
        return {count: self.at[name, count].over for name, count in self.columns if name == configuration}

    def target(self, configuration: str) -> Target | None:
        """Returns the target of one instance; None where results have different ones, or lack it."""
        found = {self.at[name, count].target for name, count in self.columns if name == configuration}
        return found.pop() if len(found) == 1 else None

    def sustained_instances(self, configuration: str) -> SustainedInstances | None:
        """Returns how many instances were sustained; None without a single target."""
        return (
            None
            if self.target(configuration) is None
            else find_sustained(self.figures_over_runs(configuration).values())
        )

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of all configurations, each once."""
        known = (found.target for found in self.at.values())
        return tuple(dict.fromkeys(without_none(known)))

    @property
    def has_instances(self) -> bool:
        """Whether the rates of single instances are known in any run."""
        return any(ran.instances for ran in self.ran)


class Study(NamedTuple):
    """The study made by one test; ``configurations`` are in the order of the bench file, else of the results."""

    test: str
    configurations: tuple[str, ...]
    ways: tuple[OneWay, ...]
    is_imported: bool

    @property
    def compares(self) -> bool:
        """Whether the study compares several configurations."""
        return len(self.configurations) > 1

    @property
    def assumes_target(self) -> bool:
        """Whether the source names no target, so that the default target is assumed."""
        return any(found.is_assumed for way in self.ways for found in way.at.values())

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of all directions, each once."""
        return tuple(dict.fromkeys(target for way in self.ways for target in way.targets))

    def quoted_name(self, configuration: str) -> str:
        """Returns the configuration's name in quotation marks; "" for a single configuration that has no name."""
        return "" if configuration == DEFAULT and not self.compares else f"“{configuration}”"


def studies(results: Iterable[Result], tests: Mapping[str, str], order: Sequence[str] = ()) -> tuple[Study, ...]:
    """Returns a study for each test whose method declares its results as one.

    ``tests`` maps a result's id to the name of its test; ``order`` is the order of the configurations.
    """
    groups = grouped(
        (name_of_test(result, tests), result)
        for result in results
        if (part := result.parameters.get("part")) in (RUNS, INSTANCES, SUMMARY)
        and is_summed_up(result.method, RUNS if part == SUMMARY else part)
    )
    found = (_study(test, members, order) for test, members in groups.items())
    return tuple(study for study in found if study.ways)


@functools.cache
def is_summed_up(method: str, part: Any) -> bool:
    """Returns whether studies sum up this part of the results of a method."""
    known = find("nicbench.methods", Method).get(method)
    return known is not None and any(table.editors and table.part == part for table in tables_of(known))


def is_shown_by_studies(result: Result) -> bool:
    """Whether an imported result has no value beyond what a study's own tables print."""
    known = {name for name, value in result.values.items() if value is not None}
    return known <= {RATE, SUM, "dropped_frames", "due_frames"}


def _study(test: str, results: Sequence[Result], order: Sequence[str]) -> Study:
    found = group_by_point(results, Target())
    places = {name: number for number, name in enumerate(order)}
    names = sorted(dict.fromkeys(name for name, _, _ in found), key=lambda name: places.get(name, len(places)))
    directions = dict.fromkeys(direction for _, direction, _ in found)
    ways = [_way(direction, tuple(names), found) for direction in sorted(directions, key=_place_of)]
    return Study(test, tuple(names), tuple(ways), is_imported=any(result.imported for result in results))


def _way(
    direction: str | None, names: tuple[str, ...], found: Mapping[tuple[str, str | None, int], TriedPoint]
) -> OneWay:
    at = {(name, count): runs for (name, of, count), runs in found.items() if of == direction}
    own = tuple(name for name in names if any(name == of for of, _ in at))
    return OneWay(direction, own, tuple(sorted({count for _, count in at})), at)


def _place_of(direction: str | None) -> int:
    return _ORDER.index(direction) if direction in _ORDER else len(_ORDER)


Kind = Literal["local", "network", "FUSE"]

_OVER_NETWORK: Final = frozenset(
    {
        *("9p", "acfs", "afs", "auristorfs", "autofs", "beegfs", "ceph", "cifs", "coda", "fhgfs", "gfs2", "glusterfs"),
        *("gpfs", "ibrix", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3"),
        *("smbfs", "vboxsf", "virtiofs", "vmhgfs", "vxfs", "wekafs"),
    }
)


class DirectoryRow(NamedTuple):
    """The directory of an instance; ``file_system`` is the type and source that the client's kernel reports."""

    configuration: str
    instance: int
    client: str
    directory: str
    file_system: str
    kind: str


def directory_rows(study: Study) -> tuple[DirectoryRow, ...]:
    """Returns each directory once, sorted by configuration and instance; none where no file system is known."""
    found = {
        DirectoryRow(
            configuration=configuration,
            instance=result.parameters["instance"],
            client=str(result.parameters.get("client") or UNKNOWN),
            directory=str(result.parameters.get("directory") or UNKNOWN),
            file_system=where or UNKNOWN,
            kind=UNKNOWN if where is None else kind_of(where),
        )
        for configuration, result in _instances(study)
        for where in (_file_system(result),)
    }
    if all(row.kind == UNKNOWN for row in found):
        return ()
    places = {name: place for place, name in enumerate(study.configurations)}
    return tuple(sorted(found, key=lambda row: (places[row.configuration], row.instance, row.directory, row.kind)))


def local_types(study: Study) -> tuple[str, ...]:
    """Returns the file system types if every instance's file system is known and local; else none."""
    found = [_file_system(result) for _, result in _instances(study)]
    known = [where for where in found if where is not None and kind_of(where) == "local"]
    return tuple(dict.fromkeys(where.partition(" ")[0] for where in known)) if len(known) == len(found) else ()


def kind_of(file_system: str) -> Kind:
    """Returns the kind of a file system by its type and source; ``host:`` and ``//host`` are network ones (GNU df)."""
    kind, _, source = file_system.partition(" ")
    if kind.startswith("fuse"):
        return "FUSE"
    return "network" if kind in _OVER_NETWORK or ":" in source or source.startswith("//") else "local"


def _instances(study: Study) -> Iterator[tuple[str, Result]]:
    """Yields the results of all instances with their configurations; instances without a result are left out."""
    for way in study.ways:
        for (configuration, _), of_configuration in way.at.items():
            for ran in of_configuration.runs:
                yield from ((configuration, result) for result in ran.instances if result is not None)


def _file_system(result: Result) -> str | None:
    where = result.values.get("file_system")
    return where if isinstance(where, str) and where else None


def compared_sentences(study: Study, statistics: StatisticsView) -> tuple[str, ...]:
    """Returns one sentence for each direction and pair of configurations, worded like all other comparisons."""
    found = []
    for way in study.ways:
        for one in _at(study, way, statistics, count_of(way)):
            found.append(f"{capitalise(one.sentence)}.")
    return tuple(found)


def count_of(way: OneWay) -> int:
    """Returns the number of instances at which configurations are compared.

    It is the fewest tried that no configuration sustained in every run, or else the most tried.
    With fewer instances the target limits every configuration alike, so none can be faster.
    """
    held = [
        found.in_every_run.instances or 0 for name in way.configurations if (found := way.sustained_instances(name))
    ]
    return next((count for count in way.counts if held and count > max(held)), way.counts[-1])


def _at(study: Study, way: OneWay, statistics: StatisticsView, instances: int) -> tuple[PointComparison, ...]:
    every = statistics.comparisons.all if statistics.comparisons else ()
    return tuple(
        one
        for one in every
        if one.point.test == study.test
        and (said := one.point.parameters).get("part") == RUNS
        and said.get("instances") == instances
        and said.get("direction") == way.direction
    )


GAP = "\u00a0"  # a number and its unit stay on one line


def rate_decimals(rates: Iterable[float | None]) -> int:
    """Returns the decimals (1 to 3) for a table of rates: three significant digits of the smallest rate above 0."""
    known = [rate for rate in rates if rate is not None and rate > 0.0]
    return min(3, max(1, *(2 - math.floor(math.log10(rate)) for rate in known))) if known else 1


def rate_of(result: Result | None) -> float | None:
    """Returns the rate of an instance in frames/s; None where it is unknown or an erratum."""
    return None if result is None else trusted_number(result, RATE)


def rate_text(frames_per_s: float | None, decimals: int) -> str:
    """Returns a rate in frames/s as text, without the unit."""
    if frames_per_s is None:
        return UNKNOWN
    return format_fixed(frames_per_s, decimals, THIN_SPACE)


def plain_rate(frames_per_s: float) -> str:
    """Returns a rate in frames/s without trailing zeros: 24, 23.976, 235.1."""
    decimals = 3 if frames_per_s < 100.0 else 1
    text = rate_text(frames_per_s, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def share_text(ratio: float | None) -> str:
    """Returns a ratio in percent without the sign; "0" and "100" are printed only where they are exact."""
    if ratio is None:
        return UNKNOWN
    percent = 100.0 * ratio
    if 0.0 < percent < 0.1:
        return "< 0.1"
    return "> 99.9" if 99.9 < percent < 100.0 else format_fixed(percent, 1).removesuffix(".0")


def target_words(target: Target) -> str:
    """Returns the target rate of an instance with its unit: "24 frames/s"."""
    return f"{plain_rate(target.frames_per_s)}{GAP}frames/s"


def held_text(held: HeldInstances | None) -> str:
    """Returns the sustained instances for a table cell: "9", "≥ 12", "8 (not 5, 6)"; a dash where unknown."""
    if held is None:
        return UNKNOWN
    if held.instances is None:
        return "fewer than tried"
    bound = f"≥{GAP}{held.instances}" if held.is_at_least else f"{held.instances}"
    return f"{bound} (not {', '.join(map(str, held.gaps))})" if held.gaps else bound


def held_words(held: HeldInstances, what: str = "", beyond: str = "") -> str:
    """Returns the sustained instances for a sentence: "9", "at least 12", "8 (though not 5)", "not even 1". ``what``
    follows the number, and ``beyond`` is put before what was missed.
    """
    if held.instances is None:
        return "not even the fewest that were tried"
    number = "not even 1" if held.instances == 0 else f"{'at least ' if held.is_at_least else ''}{held.instances}"
    missed = f"though not {and_list(list(map(str, held.gaps)))}" if held.instances and held.gaps else ""
    notes = ", ".join(note for note in (beyond, missed) if note)
    return f"{number}{what}{f' ({notes})' if notes else ''}"
