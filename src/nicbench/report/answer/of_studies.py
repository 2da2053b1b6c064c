"""The answer of a study in words: how many streams were sustained, using only the numbers of the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nicbench.report.editors.study import OneWay, Study, directory_rows, local_types
from nicbench.report.editors.words import GAP, held_words, list_words, plain_rate, target_words
from nicbench.report.numbers import megabytes, share
from nicbench.stats.frames import HeldInstances, SustainedInstances, Target


def answers(of_all: Sequence[Study]) -> tuple[str, ...]:
    """Returns the sentences of every study; where there are several, each sentence begins with the name of its test."""
    named = len(of_all) > 1
    return tuple(f"{study.test}: {text}" if named else text for study in of_all for text in sentences(study))


def sentences(study: Study) -> tuple[str, ...]:
    """Returns a sentence for each direction, and one more where counting by single instances gives a lower number."""
    found: list[str] = []
    for way in study.ways:
        limited = [name for name in way.configurations if way.sustained_instances(name) is not None]
        free = [name for name in way.configurations if name not in limited and not _targets(way, name)]
        if limited:
            found.append(_of_targets(study, way, limited))
            found += _stricter(study, way, limited)
        if free:
            found.append(_describe_without_targets(study, way, free))
    return (*found[:1], *_describe_local(study), *found[1:])


def _subject(study: Study, name: str) -> str:
    """Returns who served the editors; the server is named only where frames may have come from one."""
    return study.quoted_name(name) or ("the local file system" if local_types(study) else "the server")


def _describe_local(study: Study) -> list[str]:
    """Says of studies on local file systems that they measured neither a server nor the links under test."""
    types = local_types(study)
    if types:
        what = "local file systems" if len(types) > 1 else "a local file system"
        text = (
            f"The frames did not go over the network: every instance's directory was on {what} of its client "
            f"({', '.join(types)}). Where shares were meant, see that they are mounted."
        )
        return [text]
    rows = directory_rows(study)
    local = sum(row.kind == "local" for row in rows)
    if not local:
        return []
    text = (
        f"Of {len(rows)} directories {local} {'was' if local == 1 else 'were'} on a local file system of the client, "
        "so that nothing there went over the network; the report's “Directories” says which."
    )
    return [text]


def briefs(of_all: Sequence[Study]) -> str | None:
    """Returns one line for all studies of a run; where there are several, each is preceded by the name of its test."""
    said = [(study.test, text) for study in of_all if (text := brief(study)) is not None]
    return "; ".join(f"{test}: {text}" if len(of_all) > 1 else text for test, text in said) or None


def brief(study: Study) -> str | None:
    """Returns a few words for a list of runs: "read: 9 editors (1x100), 2 editors (4x25) in every run"."""
    said = []
    for way in study.ways:
        each = [
            f"{_count_words(found.in_every_run)}{f' ({name})' if study.compares else ''}"
            for name in way.configurations
            if (found := way.sustained_instances(name)) is not None
        ]
        if each:
            of = f"{way.direction}: " if way.direction else ""
            said.append(f"{of}{', '.join(each)} in every run")
    if not said:
        return None
    types = ", ".join(local_types(study))
    return f"{'; '.join(said)}{f' (local file systems: {types})' if types else ''}"


def _of_targets(study: Study, way: OneWay, names: list[str]) -> str:
    """Returns each configuration's number of editors in every run, and in the median run where that number differs."""
    doing = f"{way.doing}, " if way.doing else ""
    clauses = []
    for place, name in enumerate(names):
        found, target = way.sustained_instances(name), way.target(name)
        assert found is not None  # noqa: S101 - those that have
        assert target is not None  # noqa: S101 - likewise
        alike = place > 0 and target == way.target(names[0])
        subject = _subject(study, name)
        rate = "" if alike else _describe_rate(target, found)
        clauses.append(f"{subject} sustained {_numbers(study, way, name, found, rate)}")
    text = f"{doing}{'; '.join(clauses)}."
    return f"{text[:1].upper()}{text[1:]}"


def _describe_rate(target: Target, found: SustainedInstances) -> str:
    """Returns the rate of an editor and how it was judged; a sum alone does not show whether one editor made up for
    another.
    """
    by_sum = ["by the sum of their rates"] if found.by_every_instance is None else []
    within = [f"within {share(target.tolerance_ratio)}"] if target.tolerance_ratio else []
    qualified = ", ".join((*by_sum, *within))
    return f" at {target_words(target)} each{f' ({qualified})' if qualified else ''}"


def _numbers(study: Study, way: OneWay, name: str, found: SustainedInstances, rate: str) -> str:
    runs = {over.runs for over in way.figures_over_runs(name).values()}
    imported = "imported " if study.is_imported else ""
    if runs == {1}:
        return f"{_editors(found.in_every_run, way.figures_over_runs(name))}{rate} in the one {imported}run"
    many = f"each of {runs.pop()} {imported}runs" if len(runs) == 1 else f"every {imported}run"
    said = f"{_editors(found.in_every_run, way.figures_over_runs(name))}{rate} in {many}"
    if found.in_median_run.instances == found.in_every_run.instances:
        return said
    return f"{said}, {held_words(found.in_median_run)} in the median run"


def _editors(held: HeldInstances, tried: Iterable[int]) -> str:
    """Returns the number of editors and what it leaves open: more may be possible where no higher, or not the next,
    number was tried.
    """
    if held.instances is None:
        return held_words(held)
    following = min((count for count in tried if count > (held.instances or 0)), default=None)
    beyond = ""
    if following is None:
        beyond = " (no more were tried)"
    elif following > held.instances + 1:
        beyond = f" (the next that was tried: {following})"
    return _count_words(held, beyond)


def _count_words(held: HeldInstances, beyond: str = "") -> str:
    """Returns a number with the word for what is counted: "at least 1 editor", "8 editors (though not 5)". ``beyond``
    is put before what was missed.
    """
    if held.instances is None:
        return "fewer editors than were tried"
    number, gap, gaps = held_words(held).partition(" (")
    notes = f"{beyond}{gap}{gaps}".replace(") (", ", ")  # one pair of brackets
    return f"{number} {'editor' if held.instances <= 1 else 'editors'}{notes}"


def _stricter(study: Study, way: OneWay, names: list[str]) -> list[str]:
    """Says where the sum of the rates of a run hides that a single instance got less than its rate."""
    less = []
    for name in names:
        found = way.sustained_instances(name)
        strictest = found.by_every_instance if found else None
        if found is not None and strictest is not None and strictest.instances != found.in_every_run.instances:
            whose = f" ({study.quoted_name(name)})" if study.quoted_name(name) else ""
            less.append(f"{held_words(strictest)}{whose}")
    if not less:
        return []
    doing = f"{way.doing}, where" if way.doing else "Where"
    by_itself = f"{doing} each editor has to reach its rate by itself in every run, the number is {list_words(less)}"
    return [f"{by_itself}: sums hide editors that got less."]


def _targets(way: OneWay, name: str) -> bool:
    return any(way.at[of, count].target is not None for of, count in way.columns if of == name)


def _describe_without_targets(study: Study, way: OneWay, names: list[str]) -> str:
    """Says how many frames the best median run moved where editors had no frame limit."""
    doing = f"{way.doing} without a frame limit, " if way.doing else "Without a frame limit, "
    clauses = []
    for name in names:
        medians = [
            (over.median_frames_per_s, count)
            for count, over in way.figures_over_runs(name).items()
            if over.median_frames_per_s is not None
        ]
        subject = _subject(study, name)
        if not medians:
            clauses.append(f"nothing is known of {subject}")
            continue
        most, count = max(medians)
        instances = "1 instance" if count == 1 else f"{count} instances"
        moved = f"{plain_rate(most)}{GAP}frames/s{_megabytes(way, name, count)}"
        clauses.append(f"{subject} moved up to {moved}, with {instances} (median run)")
    return f"{doing}{'; '.join(clauses)}."


def _megabytes(way: OneWay, name: str, count: int) -> str:
    """Returns the megabytes per second of the run whose sum is nearest to the median."""
    runs = [ran for ran in way.at[name, count].runs if ran.figures.sum_frames_per_s is not None]
    median = way.at[name, count].over.median_frames_per_s or 0.0
    nearest = min(runs, key=lambda ran: abs((ran.figures.sum_frames_per_s or 0.0) - median), default=None)
    if nearest is None or nearest.bytes_per_s is None:
        return ""
    return f" ({megabytes(nearest.bytes_per_s)}{GAP}MB/s)"
