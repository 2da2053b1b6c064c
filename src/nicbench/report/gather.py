"""Gathers what the report of a run shows from the run folder. It reads the folder and nothing else, and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from nicbench.compare.matching import unfinished_summary
from nicbench.core.bond import Bond
from nicbench.core.events import (
    CeilingFound,
    ConfigurationSet,
    Event,
    Note,
    ResultReady,
    RoundFinished,
    RunFinished,
    RunStarted,
    TesterLatencyFound,
    TrialFinished,
    Waiting,
)
from nicbench.core.lists import grouped
from nicbench.core.plan import DEFAULT_WISHES, Plan
from nicbench.core.result import Result, Summary
from nicbench.core.round import Round
from nicbench.core.trial import Purpose, Trial
from nicbench.core.turn import run_words
from nicbench.core.units import and_list
from nicbench.report.answer import of_comparison, of_run, sentences
from nicbench.report.answer.of_run import verdict_text
from nicbench.report.answer.sentences import is_of_session
from nicbench.report.comparison import Comparison, comparison
from nicbench.report.editors import Study, compared_sentences, is_shown_by_studies, is_summed_up, studies
from nicbench.report.facts import shares_cores
from nicbench.report.imported import imported_view, label_of_time, revision_rows
from nicbench.report.injected import injected_rows, injected_sentence
from nicbench.report.model import Report, place_of
from nicbench.report.overview import overview
from nicbench.report.section import RunKnowledge, Section
from nicbench.report.sections.rounds import failures_of, tools_of, variables_of
from nicbench.report.sections.trials import lossy_trials, telling_trials
from nicbench.report.statistics import StatisticsView, statistics_view
from nicbench.report.system_table import system_table, tuned_rows
from nicbench.report.tables import has_tables, sections
from nicbench.report.tails import ports_tables, tail_tables
from nicbench.report.watched import list_cpu_users, watched_machines
from nicbench.report.wiring import endpoints_of
from nicbench.stats.links import failed_link_sentence, list_failed_links
from nicbench.store import RunFolder

_MOST_PULLED = 4
"""The most failed links that the findings name; their section has all of them."""


def gather(folder: RunFolder) -> Report:
    """Returns the whole report; for a run that ended early, with what there is."""
    events = tuple(folder.journal.events())
    plan, summary = folder.plan(), folder.summary()
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if summary is None or not folder.finished:
        title = plan.title if plan else started.title if started else folder.run_id
        summary = unfinished_summary(folder.journal.results(), plan, folder.run_id, title)
    trials = {event.trial.id: event.trial for event in events if isinstance(event, TrialFinished)}
    tests = {event.result.id: event.test for event in events if isinstance(event, ResultReady)}
    found = statistics_view(summary, tests, plan, folder.run_id)
    compared = None if summary.imported else comparison(summary, tests, plan, found)
    results = _name_by_turns(summary.results, compared)
    of_editors = studies(summary.counted, tests, summary.configurations)
    tables = sections(_details(results, compared), tests, known=RunKnowledge(plan, trials))
    rounds = tuple({event.round.key: event.round for event in events if isinstance(event, RoundFinished)}.values())
    pulled = list_failed_links(rounds, {name for result in results for name in result.trials})
    headline, details = _answers(summary, plan, compared, tables, of_editors, found)
    is_session = plan is not None and is_of_session(plan)
    if is_session:
        headline, details = sentences.headline(tuple(trials.values()), plan), ()
    injected = injected_rows(results, plan, trials)
    if (sentence := injected_sentence(injected)) is not None:
        headline, details = sentence, (headline, *details)
    groups, played = _by_test(trials.values(), compared), _by_test(rounds, compared)
    phases = {one.id: test for by_test in (groups, played) for test, samples in by_test.items() for one in samples}
    inventory = folder.read_json("inventory.json")
    ended = next((event for event in reversed(events) if isinstance(event, RunFinished)), None)
    complete = folder.finished and ended is not None and ended.complete
    return Report(
        run_id=folder.run_id,
        title=summary.title,
        description=plan.description if plan else None,
        started=label_of_time(started.wall_time) if started else None,
        nicbench_version=plan.nicbench_version if plan else started.nicbench_version if started else None,
        verdict=summary.verdict,
        verdict_text=sentences.verdict_text(tuple(trials.values()), has_ended=complete)
        if is_session
        else verdict_text(
            summary, plan, folder.run_id, complete=complete, failures=failures_of(rounds), by_rounds=bool(rounds)
        ),
        headline=headline,
        details=(*(failed_link_sentence(each) for each in pulled[:_MOST_PULLED]), *details),
        statements=(*_statements(plan), *_lost_on_cable(trials.values()), *_unlearnt(trials.values())),
        labels=_labels(plan, events),
        sections=tables,
        other_results=tuple(row for row in results if not has_tables(row.method)),
        ceilings=_lowest_ceilings(events),
        own_latencies=tuple(
            {place_of(event): event for event in events if isinstance(event, TesterLatencyFound)}.values()
        ),
        groups=groups,
        watched=watched_machines(
            folder.path,
            plan,
            phases,
            what="rounds" if rounds else "trials",
        ),
        notes=tuple(
            Note(text=f"waiting: {event.text}") if isinstance(event, Waiting) else event
            for event in events
            if isinstance(event, Note | Waiting)
        ),
        plan=plan,
        inventory=inventory if isinstance(inventory, dict) else {},
        bench_text=folder.bench_text,
        core_clock_hz=_core_clock(trials),
        changed_files=folder.differences(),
        measured_s=ended.measured_s if ended else None,
        # Simulated ports have no counters, and frames are lost in the DUT only.
        ledger=() if plan and all(each.simulated for each in plan.each) else lossy_trials(trials.values()),
        known_trials=trials,
        telling_trials=telling_trials(results, tests, trials),
        tails=tail_tables(results, tests),
        ports=ports_tables(results, tests, plan),
        comparison=compared,
        imported=imported_view(summary),
        system=system_table(inventory if isinstance(inventory, dict) else {}, _merge_declared(plan)),
        tuned=tuned_rows(folder.read_json("tuning.json")),
        rounds=played,
        cpu_users=list_cpu_users(rounds),
        tools=tools_of(rounds),
        variables=variables_of(rounds),
        endpoints=endpoints_of(plan),
        studies=of_editors,
        overview=overview(summary, tests),
        configured=tuple(event for event in events if isinstance(event, ConfigurationSet)) if is_session else None,
        rounds_used=sum(
            1
            for one in rounds
            if not one.verdict.valid and any(one.id in result.trials for result in results if result.trials)
        ),
        bonds=_bonds(rounds),
        statistics=None if found.is_empty else found,
        revisions=revision_rows(events, plan.report if plan else DEFAULT_WISHES, imported=bool(summary.imported)),
        injected=injected,
        failed_links=pulled,
    )


def _bonds(rounds: Iterable[Round]) -> dict[str, dict[str, Bond]]:
    """Returns the bonds of each configuration by endpoint, each in the state in which it was first observed."""
    found: dict[str, dict[str, Bond]] = {}
    for one in rounds:
        for seen in one.bonds:
            found.setdefault(one.configuration, {}).setdefault(seen.endpoint, seen.bond)
    return found


def _details(results: Iterable[Result], compared: Comparison | None) -> tuple[Result, ...]:
    """Returns the results without those that a study of editors shows, and without its details over the runs."""
    return tuple(
        result
        for result in results
        if not is_summed_up(result.method, result.parameters.get("part"))
        or not (compared or (result.imported and is_shown_by_studies(result)))
    )


def _answers(
    summary: Summary,
    plan: Plan | None,
    compared: Comparison | None,
    tables: tuple[Section, ...],
    of_editors: tuple[Study, ...],
    found: StatisticsView,
) -> tuple[str, tuple[str, ...]]:
    """Returns the first sentence and the further ones. A study of editors gives the answer unless frames of a tester
    were sent.
    """
    said = of_run.answers(of_editors)
    said = (*said, *(text for study in of_editors for text in compared_sentences(study, found)))
    of_frames = any(section.table.rates is not None or section.table.apart_by for section in tables)
    if said and not of_frames:
        first, *rest = said
        others = of_comparison.details(compared) if compared else of_run.details(tables)
        return first, (*rest, *others)
    known = of_run.known_devices(summary)
    measured = [section for section in tables if section.configuration not in known]
    if known and measured:  # a device of known rate shows what the machine can measure, and competes with nobody
        return of_run.headline(measured, summary, plan), (*known.values(), *of_run.details(measured), *said)
    if compared:
        return of_comparison.headline(compared), (*of_comparison.details(compared), *said)
    return of_run.headline(tables, summary, plan), (*of_run.details(tables), *said)


def _merge_declared(plan: Plan | None) -> dict[str, Any]:
    """Returns what the bench file declares; where configurations declare different things, each name carries the
    configuration.
    """
    if plan is None:
        return {}
    if all(each.declared == plan.declared for each in plan.each):
        return plan.declared
    return {f"{name}, {each.configuration}": value for each in plan.each for name, value in each.declared.items()}


def _name_by_turns(results: Iterable[Result], compared: Comparison | None) -> tuple[Result, ...]:
    """Returns the results with turns as configurations, so that each of several runs has its own tables:
    "fast, run 2".
    """
    if compared is None:
        return tuple(results)
    place = {name: number for number, name in enumerate(compared.names)}
    results = sorted(results, key=lambda result: (place.get(result.configuration, 0), result.run or 1))
    if compared.runs == 1 and not compared.warm_ups:
        return tuple(results)
    return tuple(
        result.replace(configuration=turn_name(result.configuration, result.run, compared)) for result in results
    )


def turn_name(configuration: str, run: int | None, compared: Comparison | None) -> str:
    """Returns the name of a turn: no more than distinguishes it from the others."""
    if compared is None:
        return ""
    names = [configuration] if compared.compares else []
    if run is not None and (compared.runs > 1 or compared.warm_ups):
        names.append(run_words(run, warm_up=run in compared.warm_ups))
    return ", ".join(names)


def _statements(plan: Plan | None) -> tuple[str, ...]:
    """Returns each statement once; with the name of the configuration where it does not apply to all
    that are compared.
    """
    each = plan.each if plan else ()
    texts = dict.fromkeys(text for one in each for text in one.statements)
    told = []
    for text in texts:
        of = [one.configuration for one in each if text in one.statements]
        told += [text] if len(of) == len(each) else [f"“{name}”: {text}" for name in of]
    return tuple(told)


def _lost_on_cable(trials: Iterable[Trial]) -> Iterator[str]:
    """Yields, for each configuration, how many frames were lost over a cable in the DUT's place, and what follows."""
    last = {
        (trial.configuration, mix.name if (mix := trial.request.mix) else f"{trial.request.frame_bytes:g} bytes"): trial
        for trial in trials
        if trial.request.purpose is Purpose.TESTER_LATENCY
    }
    configurations = dict.fromkeys(configuration for configuration, _ in last)
    for configuration in configurations:
        losing = {
            size: trial.reading.counts
            for (of, size), trial in last.items()
            if of == configuration and trial.reading.counts.lost
        }
        if not losing:
            continue
        whose = f"“{configuration}”: " if len(configurations) > 1 else ""
        lost, sent = (sum(getattr(counts, name) for counts in losing.values()) for name in ("lost", "sent"))
        yield (
            f"{whose}{lost} of {sent} frames of {and_list(list(losing))} were lost over a cable in the DUT’s place, by "
            "the tester or the lab itself: losses that are measured with the DUT include such losses."
        )


def _unlearnt(trials: Iterable[Trial]) -> Iterator[str]:
    """Yields, for each stream of which flows did not pass or were not taught before trials, how many at most, and what
    follows.
    """
    worst: dict[tuple[str, str, str], tuple[int, str]] = {}
    for trial in trials:
        names = [port.name for port in trial.reading.ports]
        for learnt in trial.reading.learning:
            silent = learnt.silent, f"{learnt.say(names)}, as learning frames showed before trials"
            unsent = learnt.unsent, f"{learnt.say_unsent(names)} before trials"
            for what, found in (("silent", silent), ("unsent", unsent)):
                key = trial.configuration, learnt.stream, what
                if found[0] > worst.get(key, (0, ""))[0]:
                    worst[key] = found
    several = len({configuration for configuration, _, _ in worst}) > 1
    for (configuration, _, _), (_, said) in worst.items():
        of = f"“{configuration}”: " if several else ""
        yield f"{of}{said}: what these flows lose counts as lost."


def _labels(plan: Plan | None, events: tuple[Event, ...]) -> tuple[str, ...]:
    """Returns what a reader must know in addition to the verdict, in two words each."""
    resumed = any(isinstance(event, RunStarted) and event.resumed for event in events)
    known = {
        "shared cores": bool(plan and any(map(shares_cores, plan.each))),
        "simulated": bool(plan and any(each.simulated for each in plan.each)),
        "resumed": resumed,
    }
    return tuple(label for label, is_so in known.items() if is_so)


def _lowest_ceilings(events: tuple[Event, ...]) -> tuple[CeilingFound, ...]:
    """Returns one ceiling for each frame size and turn, smallest size first: the lowest that a shortfall showed, or
    else the calibrated one.
    """
    found: dict[tuple[float, str, str, int], CeilingFound] = {}
    for event in events:
        if isinstance(event, CeilingFound):
            before = found.get(place_of(event))
            if before is None or before.calibrated or _is_lower(event, before):
                found[place_of(event)] = event
    return tuple(found[size] for size in sorted(found))


def _is_lower(one: CeilingFound, other: CeilingFound) -> bool:
    return (one.ceiling_frames_per_s or 0.0) <= (other.ceiling_frames_per_s or 0.0)


_Sample = TypeVar("_Sample", Trial, Round)


def _by_test(samples: Iterable[_Sample], compared: Comparison | None) -> dict[str, list[_Sample]]:
    """Returns the trials or rounds of each test, of each turn where there are several."""
    turns = ((turn_name(one.configuration, one.run, compared), one) for one in samples)
    return grouped((f"{turn}: {one.test}" if turn else one.test, one) for turn, one in turns)


def _core_clock(trials: dict[str, Trial]) -> tuple[float, float] | None:
    clocks = [hz for trial in trials.values() for hz in trial.reading.health.core_clock_hz or ()]
    return (min(clocks), max(clocks)) if clocks else None
