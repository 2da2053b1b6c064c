"""The answer of a study in words: how many streams were sustained, using only the numbers of the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nicbench.core.lists import grouped
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread, Summary
from nicbench.core.turn import DEFAULT
from nicbench.core.units import and_list, count_of
from nicbench.methods.base import Method, tables_of
from nicbench.report import tables
from nicbench.report.answer.sentences import answers_of, brief_rate, largest_sentence, statement_of, subject_in
from nicbench.report.answer.sentences import brief as session_in_brief
from nicbench.report.editors import (
    GAP,
    OneWay,
    Study,
    directory_rows,
    held_words,
    local_types,
    plain_rate,
    studies,
    target_words,
)
from nicbench.report.numbers import megabytes, share
from nicbench.report.section import Section
from nicbench.report.wording import capitalise
from nicbench.stats.frames import HeldInstances, SustainedInstances, Target
from nicbench.stats.intervals import Agreement


def answers(of_all: Sequence[Study]) -> tuple[str, ...]:
    """Returns the sentences of every study; where there are several, each sentence begins with the name of its test."""
    named = len(of_all) > 1
    return tuple(f"{study.test}: {text}" if named else text for study in of_all for text in sentences(study))


def sentences(study: Study) -> tuple[str, ...]:
    """Returns a sentence for each direction, and one more where counting by single instances gives a lower number."""
    found = []
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
    said = [(study.test, text) for study in of_all if (text := study_in_brief(study)) is not None]
    return "; ".join(f"{test}: {text}" if len(of_all) > 1 else text for test, text in said) or None


def study_in_brief(study: Study) -> str | None:
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
    return capitalise(text)


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
        beyond = "no more were tried"
    elif following > held.instances + 1:
        beyond = f"the next that was tried: {following}"
    return _count_words(held, beyond)


def _count_words(held: HeldInstances, beyond: str = "") -> str:
    """Returns a number with the word for what is counted: "at least 1 editor", "8 editors (though not 5)". ``beyond``
    is put before what was missed.
    """
    if held.instances is None:
        return "fewer editors than were tried"
    return held_words(held, " editor" if held.instances <= 1 else " editors", beyond)


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
    by_itself = f"{doing} each editor has to reach its rate by itself in every run, the number is {and_list(less)}"
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
        instances = count_of(count, "instance")
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


_MOST_SENTENCES = 4
_MOST_DEVICES = 3
"""The most imported devices that the answer is about; the tables have all."""


def headline(sections: Sequence[Section], summary: Summary, plan: Plan | None) -> str:
    """Returns the answer: the rate of the smallest frames, which are the hardest; the latency where only that was
    measured; or else what the first section says.
    """
    ordered = in_order(sections)
    first = ordered[0] if ordered else None
    subject = subject_in(plan, first.configuration if first else DEFAULT)
    if first is not None and first.table.statement is not None:
        if (said := statement_of(first)) is not None or any(row.result.trials for row in first.rows):
            return f"{subject} {first.table.statement.alone}. {said or ''}".strip()
    elif first is not None and (said_of_first := answers_of(first, subject)):
        return " ".join((said_of_first[0], *(_of_other_devices(ordered, plan) if summary.imported else ())))
    if summary.results and all(map(_is_empty, summary.results)):
        return "Nothing was measured: no tool gave a figure."
    lacking = [result for result in summary.results if _is_of_rounds(result) and not _is_complete(result)]
    if lacking:
        return f"{subject} was not measured as planned: {len(lacking)} of {len(summary.results)} results have no value."
    if summary.results:
        were = "measured" if summary.imported is None else "imported"
        return f"{len(summary.results)} results were {were}; they are listed below."
    if summary.imported is not None:
        recorded = [each.host for each in plan.monitors] if plan else []
        return f"No results, but what {' and '.join(recorded[:5])} did was recorded: it is shown below."
    return "Nothing was measured: the run ended before its first result."


def _of_other_devices(sections: Sequence[Section], plan: Plan | None) -> Iterator[str]:
    """Yields what the first section says, of the other imported devices: a table of two cards is about both."""
    first, *others = sections
    for each in others[: _MOST_DEVICES - 1]:
        if each.test == first.test and each.configuration != first.configuration:
            yield from answers_of(each, subject_in(plan, each.configuration))[:1]


def known_devices(summary: Summary) -> dict[str, str]:
    """Returns the configurations whose device has a known rate, each with a sentence on whether it was found."""
    checks = grouped((result.configuration, result) for result in summary.counted if "self_check" in result.values)
    told = {}
    for name, found in checks.items():
        missed = [each.values["self_check"] for each in found if each.values["agreement"] != Agreement.AGREE.value]
        said = f": {'; '.join(map(str, missed))}" if missed else ", and every result agrees with it"
        told[name] = f"“{name}” has a known rate{said}."
    return told


def in_order(sections: Sequence[Section]) -> list[Section]:
    """Returns the sections in order: searched rates first, then statements about frames at a load, then all others."""
    return sorted(
        sections, key=lambda section: (section.table.rates is None, not section.table.apart_by, section.table.editors)
    )


def details(sections: Sequence[Section]) -> tuple[str, ...]:
    """Returns the further sentences: the largest frames, the latency, and what other methods found."""
    ordered = in_order(sections)
    if not ordered:
        return ()
    first = ordered[0]
    sentences = []
    if first.table.rates is not None or first.table.apart_by:
        sentences.append(largest_sentence(first) if first.table.rates is not None and len(first.rows) > 1 else None)
        stating = next((section for section in ordered if section.table.apart_by), None)
        if first.table.rates is not None and stating is not None:
            sentences += answers_of(stating, "It")[:1]
        others = (each for each in ordered if each.table.rates is None and not each.table.apart_by)
        sentences += [_sentence_of_other(section, first.configuration) for section in others if section.sentence]
    elif _is_of_rounds(first.rows[0].result):
        sentences += _more_of_rounds(ordered)
    return tuple(sentence for sentence in sentences if sentence)


def in_brief(summary: Summary) -> str | None:
    """Returns the answer in a few words, for a list of runs; of each configuration, where several are compared.

    None for a summary that nicbench did not write.
    """
    try:
        of_editors = studies(summary.counted, {}, summary.configurations)
        if of_editors:
            return briefs(of_editors)
        if (of_session := session_in_brief(summary.counted)) is not None:
            return of_session
        if not summary.configurations:
            return _brief(summary.over_runs or summary.counted)
        by_name = {
            name: _brief([one for one in summary.beside_each_other if one.configuration == name])
            for name in summary.configurations
        }
        return "; ".join(f"{name}: {text}" for name, text in by_name.items() if text) or None
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        return None


def _brief(results: Sequence[Result]) -> str | None:
    """Returns what ``brief`` says of all sections; where rates were searched, others are not made for it."""
    methods = find("nicbench.methods", Method)
    searching = {
        kind
        for kind in {result.method for result in results}
        if kind in methods and any(table.search_notes for table in tables_of(methods[kind]))
    }
    searched = [result for result in results if result.method in searching]
    return brief(tables.sections(searched or results, {}))


def brief(sections: Sequence[Section]) -> str | None:
    """Returns the first rate, or else what the first section says."""
    ordered = in_order(sections)
    searched = next((section for section in ordered if section.table.rates is not None), None)
    if searched is not None:
        return brief_rate(searched)
    return ((ordered[0].claim or "").partition(", and ")[0] or None) if ordered else None


def _more_of_rounds(sections: Sequence[Section]) -> list[str]:
    """Returns what the other rows of the first section say, and what the first section of each other test says."""
    first = sections[0]
    rows = [f"It {text}." for row in first.rows[1:] if first.table.grid is None and (text := first.sentence_of(row))]
    tests = {section.test: section for section in reversed(sections)}
    others = [each for each in sections if each.test != first.test and tests[each.test] is each]
    return [*rows[: _MOST_SENTENCES - 1], *(f"It {each.sentence}." for each in others if each.sentence)]


def _sentence_of_other(section: Section, first: str) -> str:
    """Returns the sentence of a section; it names the configuration where that is not the one that the
    answer is about.
    """
    subject = "It" if section.configuration == first else f"“{section.configuration}”"
    return f"{subject} {section.sentence}."


def _is_of_rounds(result: Result) -> bool:
    return result.measured_by == "round"


def _is_complete(result: Result) -> bool:
    return result.verdict is not ResultVerdict.INCOMPLETE


def _is_empty(result: Result) -> bool:
    """Returns whether a result of rounds has not a single number."""
    numbers = (value for value in result.values.values() if isinstance(value, Bounded | Spread | int | float))
    return _is_of_rounds(result) and result.verdict is ResultVerdict.INCOMPLETE and next(numbers, None) is None


_MOST_FAILURES = 3
"""The most failures that the first page names; the rounds further below have all of them."""


def verdict_text(
    summary: Summary,
    plan: Plan | None,
    run_id: str,
    *,
    complete: bool = False,
    failures: Sequence[str] = (),
    by_rounds: bool = False,
) -> str:
    """Says what the verdict means, and what to make of it. A ``complete`` run may have fewer results than were planned.
    ``failures`` lists the failures of tools; ``by_rounds`` says that tools measured the results in rounds.
    """
    if by_rounds and summary.imported is None:
        return _verdict_of_rounds(summary, run_id, failures, complete=complete)
    total = len(summary.results)
    if summary.imported is not None:
        return (
            "Imported: not measured by nicbench, which only looked for figures that exceed the line rate or contradict "
            "one another."
        )
    disturbed = sum(1 for result in summary.counted if result.verdict is ResultVerdict.DISTURBED)
    contradicted = sum(1 for result in summary.counted if result.contradicted_by)
    if summary.verdict.is_reliable:
        return "No result rests on losses that the tester may have caused."
    if summary.verdict is ResultVerdict.DISTURBED:
        why = []
        if disturbed > contradicted:
            of = f"{disturbed - contradicted} of {count_of(len(summary.counted), 'result')}"
            why.append(f"Other work on the machine disturbed at least one trial behind {of}, even after repeats.")
        if contradicted:
            why.append(f"A later trial contradicts {contradicted} of {count_of(len(summary.counted), 'result')}.")
        return f"{' '.join(why)} They are marked *: treat their numbers as indications, or repeat the run."
    marked = f" {disturbed} of {len(summary.counted)} are disturbed." if disturbed else ""
    planned = _count_planned(plan) if plan else 0
    if not complete and (not plan or total < planned):
        most = "at most " if plan and plan.runs.grows else ""
        counted = f"{total} of {most}{planned} planned results are here" if planned else f"{total} results are here"
        ended = f"The run ended before everything was measured: {counted}."
        return f"{ended}{marked} To go on where it stopped: nicbench resume {run_id}"
    empty = [result for result in summary.counted if result.verdict is ResultVerdict.INCOMPLETE]
    if not empty:
        return f"Everything planned was measured, but the run ended before its summary.{marked}"
    without = f"{len(empty)} of {len(summary.counted)} results have no value{_reasons(empty)}"
    return f"Everything planned was tried. {without}.{marked}"


def _verdict_of_rounds(summary: Summary, run_id: str, failures: Sequence[str], *, complete: bool) -> str:
    """Says what the verdict of a run of rounds means, and repeats every failure of a tool in the tool's own words."""
    total = len(summary.counted)
    doubtful = [result for result in summary.counted if result.verdict is not ResultVerdict.VALID]
    if summary.verdict is ResultVerdict.VALID:
        return "In every round behind these results every tool did its work and nothing disturbed the machines."
    said = []
    if not complete:
        said.append(f"The run ended before everything was measured; {total} results are here.")
    if doubtful:
        said.append(
            f"In rounds of {len(doubtful)} of {count_of(total, 'result')} a tool failed or something disturbed "
            "a machine, even after repeats. What rests on them is marked *."
        )
    shown = failures[:_MOST_FAILURES]
    said += [f"A tool failed: {text}." for text in shown]
    if len(failures) > len(shown):
        said.append(f"{len(failures) - len(shown)} more failures are listed with the rounds below.")
    if not complete:
        said.append(f"To go on where it stopped: nicbench resume {run_id}")
    return " ".join(said)


def _count_planned(plan: Plan) -> int:
    """Returns the number of planned results, over all turns."""
    return sum(turn.points for turn in plan.turns) or sum(test.points for test in plan.tests)


def _reasons(results: Sequence[Result]) -> str:
    """Returns why results have no value: each reason once, as the results give it."""
    reasons = dict.fromkeys(
        value.reason_null
        for result in results
        for value in result.values.values()
        if isinstance(value, Bounded) and value.reason_null
    )
    return f" ({'; '.join(reasons)})" if reasons else ""
